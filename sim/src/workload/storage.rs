//! Storage: clients read objects that are striped over several servers, whose answers meet at the client's line, and write
//! them to several.
//!
//! The read is the synchronized one of A. Phanishayee et al., "Measurement and analysis of TCP throughput collapse in
//! cluster-based storage systems", FAST 2008, where incast was first described.

use serde::{Deserialize, Serialize};

use super::chance::{shuffle, waiting_time};
use super::error::{WorkloadError, require, require_hosts};
use super::placement::Placement;
use super::program::{Action, After, Group, Program};
use super::sizes::Sizes;
use crate::packet::HostId;
use crate::random::{Probability, Purpose, Stream};
use crate::time::Time;

/// The configuration.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Storage {
    /// Hosts that read and write (the first ranks), at least 1.
    pub clients: u32,
    /// Hosts that store (the ranks behind); without: all others.
    pub servers: Option<u32>,
    /// Over how many servers an object is striped, drawn anew for each; at least 1.
    pub stripes: u32,
    /// Sizes of objects. A stripe has at least 1 byte.
    pub objects: Sizes,
    /// How many objects each client reads or writes, at least 1.
    pub requests: u32,
    /// The mean time between the requests of a client: they are a Poisson process.
    pub mean_gap_ns: u64,
    /// So many of 100 requests write: the stripes go to the servers, which confirm them. At most 100.
    pub write_percent: u32,
    /// A request to a server, or its confirmation of a write; at least 1.
    pub command_bytes: u64,
    /// How long a server takes for a command.
    pub service_ns: u64,
    /// Which hosts play.
    pub placement: Placement,
}

impl Default for Storage {
    fn default() -> Self {
        Self {
            clients: 1,
            servers: None,
            stripes: 8,
            objects: Sizes::Fixed(1 << 20),
            requests: 16,
            mean_gap_ns: 200_000,
            write_percent: 0,
            command_bytes: 64,
            service_ns: 10_000,
            placement: Placement::InOrder,
        }
    }
}

impl Storage {
    /// The program for so many hosts; each object that is read or written is a group.
    ///
    /// # Errors
    /// If there are too few hosts, or a field is out of its range.
    pub fn program(&self, hosts: u32, seed: u64) -> Result<Program, WorkloadError> {
        require(self.clients >= 1, "clients", 0, "at least 1")?;
        require(self.stripes >= 1, "stripes", 0, "at least 1")?;
        require(self.requests >= 1, "requests", 0, "at least 1")?;
        require(self.command_bytes >= 1, "command_bytes", 0, "at least 1")?;
        require(
            self.write_percent <= 100,
            "write_percent",
            self.write_percent,
            "at most 100",
        )?;
        let servers = self.servers.unwrap_or(hosts.saturating_sub(self.clients));
        let ranks = u64::from(self.clients) + u64::from(servers.max(self.stripes));
        require_hosts(ranks, hosts)?;
        require(
            servers >= self.stripes,
            "servers",
            servers,
            "at least the number of stripes",
        )?;
        let host = self.placement.place(self.clients + servers, hosts, seed)?;
        let (clients, servers) = host.split_at(self.clients as usize);
        let sizes = self.objects.sampler()?;
        let mut program = Program::new(hosts);
        for (number, &client) in (0..).zip(clients) {
            let mut stream = Stream::new(seed, Purpose::Traffic, 1000 + number);
            let mut servers = servers.to_vec();
            let mut now = Time::ZERO;
            for request in 0..self.requests {
                now += waiting_time(&mut stream, self.mean_gap_ns as f64 * 1e3);
                let bytes = sizes.draw(&mut stream);
                let writes = stream.chance(Probability::ratio(u64::from(self.write_percent), 100));
                let what = if writes { "writes" } else { "reads" };
                program.begin_group(Group {
                    name: format!("host {client} {what} object {request}"),
                    bytes,
                    bus_factor: (1, 1),
                });
                shuffle(&mut stream, &mut servers);
                let stripe = bytes.div_ceil(u64::from(self.stripes)).max(1);
                for &server in &servers[..self.stripes as usize] {
                    let sizes = if writes {
                        (stripe, self.command_bytes)
                    } else {
                        (self.command_bytes, stripe)
                    };
                    self.exchange(&mut program, client, server, sizes, request, now)?;
                }
            }
        }
        Ok(program)
    }

    /// A command and its answer.
    fn exchange(
        &self,
        program: &mut Program,
        client: HostId,
        server: HostId,
        (ask, answer): (u64, u64),
        flow: u32,
        at: Time,
    ) -> Result<(), WorkloadError> {
        let transfer = |from, to, bytes| Action::Transfer {
            from,
            to,
            bytes,
            flow,
        };
        let asked = program.add(transfer(client, server, ask), at, &[])?;
        let service = Action::Pause {
            host: server,
            span: Time::from_ns(self.service_ns),
        };
        let served = program.add(service, at, &[After::Done(asked)])?;
        program.add(transfer(server, client, answer), at, &[After::Done(served)])?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::check::{bytes_by_host, ends};

    #[test]
    fn a_read_is_an_incast_of_its_stripes() {
        let config = Storage {
            stripes: 4,
            objects: Sizes::Fixed(4000),
            requests: 1,
            mean_gap_ns: 0,
            ..Storage::default()
        };
        let program = config.program(9, 0).unwrap();
        let (sent, received) = bytes_by_host(&program);
        assert_eq!((sent[0], received[0]), (4 * 64, 4000));
        assert_eq!(sent[1..].iter().filter(|&&bytes| bytes == 1000).count(), 4);
        // All answers start together: what is needed for an incast.
        let ends = ends(&program, |_| Time::from_us(2));
        let at_client: Vec<_> = ends.iter().skip(2).step_by(3).collect();
        assert_eq!(at_client, [&Time::from_us(14); 4]);
    }

    #[test]
    fn so_many_requests_write() {
        let config = Storage {
            clients: 2,
            stripes: 2,
            objects: Sizes::Storage,
            requests: 2000,
            write_percent: 30,
            ..Storage::default()
        };
        let program = config.program(8, 1).unwrap();
        let writes = program
            .groups()
            .iter()
            .filter(|group| group.name.contains("writes"));
        assert!((1100..1300).contains(&writes.count()));
        assert_eq!(program.groups().len(), 4000);
        // Each of six servers has a third of 4,000 stripes of two.
        for server in 2..8 {
            let served = program
                .tasks()
                .iter()
                .filter(|task| matches!(task.action, Action::Pause { host, .. } if host == server));
            assert!((1200..1470).contains(&served.count()));
        }
        assert!(
            program
                .pairs()
                .iter()
                .all(|&(from, to)| (from < 2) != (to < 2))
        );
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(Storage::default().program(8, 0).is_err());
        assert!(Storage::default().program(9, 0).is_ok());
        assert!(
            Storage {
                servers: Some(4),
                ..Storage::default()
            }
            .program(20, 0)
            .is_err()
        );
        assert!(
            Storage {
                write_percent: 101,
                ..Storage::default()
            }
            .program(20, 0)
            .is_err()
        );
    }
}
