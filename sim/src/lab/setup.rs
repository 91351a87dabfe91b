//! What every scenario needs: large endpoints with virtual memory on a network, connected and idle.

use metaroce_core::config::{ConnectionConfig, EndpointConfig};
use metaroce_core::memory::{Access, LocalSlice, Region, RemoteAddress};
use metaroce_core::work::{
    CloseReason, Completion, ConnectionHandle, Event, Operation, PostError, Source, Status,
    WorkFlags, WorkRequest,
};

use crate::endpoint::{LargeEndpoint, address};
use crate::host::{Host, Payload};
use crate::memory::VirtualMemory;
use crate::packet::HostId;
use crate::simulation::{Simulation, Stop};
use crate::time::Time;
use crate::topology::Topology;

/// A host of a scenario.
pub type LabHost = Host<LargeEndpoint, VirtualMemory>;

/// Why a scenario gave no figure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The connection was not made in time.
    NotConnected {
        /// From.
        from: HostId,
        /// To.
        to: HostId,
    },
    /// A connection ended.
    Closed(CloseReason),
    /// A work request was not taken.
    Post(PostError),
    /// An operation failed.
    Failed(Status),
    /// The work was not done by then.
    TimeLimit(Time),
    /// A port lost count of its packets.
    NotConserved,
    /// The fabric could not be built.
    Fabric(crate::fabric::FabricError),
}

impl core::fmt::Display for Failure {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NotConnected { from, to } => {
                write!(f, "no connection from host {from} to host {to}")
            }
            Self::Closed(reason) => write!(f, "a connection ended: {reason:?}"),
            Self::Post(error) => write!(f, "a work request was refused: {error}"),
            Self::Failed(status) => write!(f, "an operation failed: {status:?}"),
            Self::TimeLimit(at) => write!(f, "not done at {at}"),
            Self::NotConserved => f.write_str("a port lost count of its packets"),
            Self::Fabric(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for Failure {}

/// How the endpoints of a scenario are set.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The seed of everything.
    pub seed: u64,
    /// Rate of a plane, Mbit/s.
    pub mbps: u32,
    /// Planes.
    pub planes: u8,
    /// Connections that each endpoint can hold.
    pub connections: usize,
    /// Regions that each host registers.
    pub regions: usize,
    /// Rate hints.
    pub hints: bool,
    /// Print every packet. By default if the environment variable `METAROCE_PACKETS` is set.
    pub verbose: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            seed: 1,
            mbps: 100_000,
            planes: 1,
            connections: 1,
            regions: 1,
            hints: true,
            verbose: std::env::var_os("METAROCE_PACKETS").is_some(),
        }
    }
}

/// Where every region begins: its index times this.
pub const REGION_BYTES: u64 = 1 << 40;

/// Endpoints on a network.
pub struct Lab {
    /// The simulation.
    pub sim: Simulation<LabHost>,
    /// Every host's regions.
    pub regions: Vec<Vec<Region>>,
    planes: u8,
}

/// Something a scenario has to react to.
#[derive(Clone, Copy, Debug)]
pub enum Happening {
    /// An operation ended.
    Completion(HostId, Completion),
    /// All paths of a plane failed, or one answers again.
    Plane(HostId, u8, bool),
    /// An alarm.
    Alarm(u32),
    /// The time limit, or nothing left that could happen.
    Limit,
}

impl Lab {
    /// A host of the given settings at every place of the network.
    #[must_use]
    pub fn new(topology: Topology, settings: &Settings) -> Self {
        let config = EndpointConfig {
            planes: settings.planes,
            plane_mbps: settings.mbps,
            hints: settings.hints,
            ..EndpointConfig::default()
        };
        let hosts: Vec<LabHost> = (0..topology.network.hosts() as HostId)
            .map(|id| {
                Host::new(
                    id,
                    config,
                    ConnectionConfig {
                        paths: 64,
                        ..ConnectionConfig::default()
                    },
                    settings.connections,
                    Payload::Virtual,
                    VirtualMemory::default(),
                    settings.seed,
                )
            })
            .collect();
        let mut lab = Self {
            sim: Simulation::new(topology.network, hosts),
            regions: Vec::new(),
            planes: settings.planes,
        };
        lab.sim.network.verbose = settings.verbose;
        for host in &mut lab.sim.hosts {
            host.verbose = settings.verbose;
            let regions = (0..settings.regions as u64)
                .filter_map(|i| {
                    host.endpoint
                        .register(i * REGION_BYTES, REGION_BYTES, Access::ALL)
                        .ok()
                })
                .collect();
            lab.regions.push(regions);
        }
        lab
    }

    /// Connects two hosts and waits until both say so.
    ///
    /// # Errors
    /// If it takes more than a second.
    pub fn connect(
        &mut self,
        from: HostId,
        to: HostId,
        config: ConnectionConfig,
    ) -> Result<ConnectionHandle, Failure> {
        let failure = Failure::NotConnected { from, to };
        let limit = self.sim.now() + Time::from_ms(1_000);
        let peer: Vec<_> = (0..self.planes).map(|plane| address(to, plane)).collect();
        let now = self.sim.now();
        let host = self.sim.host(from);
        let at = host.instant(now);
        let handle = host
            .endpoint
            .connect(at, &peer, config)
            .map_err(|_| failure.clone())?;
        self.sim.kick(from);
        let (mut here, mut there) = (false, false);
        while !(here && there) {
            let Stop::News(host) = self.sim.run(limit) else {
                return Err(failure);
            };
            while let Some(event) = self.sim.host(host).next_event() {
                match event {
                    Event::Connected {
                        incoming: false, ..
                    } => here |= host == from,
                    Event::Connected { incoming: true, .. } => there |= host == to,
                    Event::Closed { reason, .. } => return Err(Failure::Closed(reason)),
                    _ => {}
                }
            }
        }
        Ok(handle)
    }

    /// Lets `span` pass with nothing to do.
    ///
    /// # Errors
    /// If something happens.
    pub fn idle(&mut self, span: Time) -> Result<(), Failure> {
        let limit = self.sim.now() + span;
        while !matches!(self.next(limit)?, Happening::Limit) {}
        Ok(())
    }

    /// Posts a write of `bytes` to the peer's region `region` (and from the same one of this host).
    ///
    /// # Errors
    /// If it is not taken.
    pub fn write(
        &mut self,
        from: HostId,
        to: HostId,
        connection: ConnectionHandle,
        region: usize,
        bytes: u32,
        id: u64,
    ) -> Result<(), Failure> {
        let local = LocalSlice {
            region: self.regions[from as usize][region].index,
            offset: 0,
            length: bytes,
        };
        let remote = RemoteAddress {
            address: region as u64 * REGION_BYTES,
            key: self.regions[to as usize][region].key,
        };
        let operation = Operation::Write {
            local: Source::Region(local),
            remote,
            immediate: None,
        };
        let work = WorkRequest {
            id,
            operation,
            flags: WorkFlags::default(),
        };
        let now = self.sim.now();
        let host = self.sim.host(from);
        let at = host.instant(now);
        host.endpoint
            .post(at, connection, 0, &work)
            .map_err(Failure::Post)?;
        self.sim.kick(from);
        Ok(())
    }

    /// Lets time pass until something happens that a scenario has to react to.
    ///
    /// # Errors
    /// If an operation fails or a connection ends.
    pub fn next(&mut self, limit: Time) -> Result<Happening, Failure> {
        loop {
            let host = match self.sim.run(limit) {
                Stop::News(host) => host,
                Stop::Alarm(token) => return Ok(Happening::Alarm(token)),
                Stop::Limit | Stop::Idle => return Ok(Happening::Limit),
            };
            // One at a time: a host with more news is put back.
            let Some(event) = self.sim.host(host).next_event() else {
                continue;
            };
            self.sim.kick(host);
            match event {
                Event::Completion(completion) if completion.status == Status::Success => {
                    return Ok(Happening::Completion(host, completion));
                }
                Event::Completion(completion) => return Err(Failure::Failed(completion.status)),
                Event::Closed { reason, .. } => return Err(Failure::Closed(reason)),
                Event::StreamFailed { status, .. } => return Err(Failure::Failed(status)),
                Event::PlaneDown { plane, .. } => return Ok(Happening::Plane(host, plane, false)),
                Event::PlaneUp { plane, .. } => return Ok(Happening::Plane(host, plane, true)),
                Event::Connected { .. } => {}
            }
        }
    }

    /// Waits for the next completion.
    ///
    /// # Errors
    /// If an operation fails, a connection ends, or it takes until `limit`.
    pub fn completion(&mut self, limit: Time) -> Result<(HostId, Completion), Failure> {
        loop {
            match self.next(limit)? {
                Happening::Completion(host, completion) => return Ok((host, completion)),
                Happening::Limit => return Err(Failure::TimeLimit(limit)),
                Happening::Plane(..) | Happening::Alarm(_) => {}
            }
        }
    }

    /// The newest hint that a connection holds, in Mbit/s; 0 = none.
    #[must_use]
    pub fn hint_mbps(&self, host: HostId, connection: ConnectionHandle) -> u32 {
        self.sim.hosts[host as usize]
            .endpoint
            .connection_statistics(connection)
            .map_or(0, |statistics| statistics.hint_mbps)
    }

    /// Bytes placed in a host's region.
    #[must_use]
    pub fn placed(&self, host: HostId, region: usize) -> u64 {
        self.sim.hosts[host as usize]
            .memory
            .placed(self.regions[host as usize][region].index)
    }

    /// That no port lost count.
    ///
    /// # Errors
    /// If one did.
    pub fn check_conservation(&self) -> Result<(), Failure> {
        if self.sim.network.is_conserved() {
            Ok(())
        } else {
            Err(Failure::NotConserved)
        }
    }
}
