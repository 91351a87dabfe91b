//! The transports that are run, each with hosts of its own.

use metaroce_sim::endpoint::LargeEndpoint;
use metaroce_sim::fabric::FabricConfig;
use metaroce_sim::packet::HostId;
use metaroce_sim::port::FlowControl;
use metaroce_sim::switch::Spray;
use metaroce_sim::transport::celeris::{CelerisConfig, CelerisHost};
use metaroce_sim::transport::infiniband::{InfinibandConfig, InfinibandHost, Routing};
use metaroce_sim::transport::metaroce::{self, MetaroceConfig, MetaroceHost};
use metaroce_sim::transport::roce::{RoceConfig, RoceHost};
use metaroce_sim::transport::uec::{Control, UecConfig, UecHost};
use metaroce_sim::workload::program::Program;

/// A transport with its settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    /// MetaRoCE with so many paths.
    Metaroce(u8),
    /// RoCEv2: go-back-N and DCQCN.
    Roce,
    /// RoCEv2 with IRN.
    Irn,
    /// InfiniBand.
    Infiniband(Routing),
    /// Ultra Ethernet, on switches that drop.
    Uec(Control),
    /// Ultra Ethernet on switches that trim.
    UecTrimming,
    /// Best effort.
    Celeris,
}

/// Hosts of one transport.
pub enum Hosts {
    /// MetaRoCE.
    Metaroce(Vec<MetaroceHost<LargeEndpoint>>),
    /// RoCEv2.
    Roce(Vec<RoceHost>),
    /// InfiniBand.
    Infiniband(Vec<InfinibandHost>),
    /// Ultra Ethernet.
    Uec(Vec<UecHost>),
    /// Best effort.
    Celeris(Vec<CelerisHost>),
}

impl Transport {
    /// All that are run.
    pub const ALL: [Self; 10] = [
        Self::Metaroce(8),
        Self::Metaroce(64),
        Self::Roce,
        Self::Irn,
        Self::Infiniband(Routing::Static),
        Self::Infiniband(Routing::Adaptive),
        Self::Uec(Control::Sender),
        Self::Uec(Control::Receiver),
        Self::UecTrimming,
        Self::Celeris,
    ];

    /// What it asks of the switches.
    pub fn prepare(self, fabric: &mut FabricConfig) {
        match self {
            Self::Infiniband(Routing::Adaptive) => fabric.spray = Spray::Adaptive,
            Self::UecTrimming if fabric.flow == FlowControl::None => {
                fabric.trim = true;
                fabric.queue_bytes = 178_450;
            }
            _ => {}
        }
    }

    /// Hosts for a program.
    ///
    /// # Errors
    /// What is wrong with the settings.
    pub fn hosts(
        self,
        fabric: &FabricConfig,
        program: &Program,
        seed: u64,
    ) -> Result<Hosts, String> {
        let ids = 0..fabric.hosts();
        let hosts = match self {
            Self::Metaroce(paths) => {
                let config = MetaroceConfig {
                    paths,
                    planes: fabric.planes,
                    ..MetaroceConfig::default()
                };
                let peers = peers(fabric.hosts(), &program.pairs());
                Hosts::Metaroce(metaroce::hosts(&config, seed, &peers)?)
            }
            Self::Roce => {
                let config = RoceConfig::default();
                Hosts::Roce(
                    ids.map(|id| RoceHost::new(id, config.clone(), seed))
                        .collect(),
                )
            }
            Self::Irn => {
                let config = RoceConfig::irn();
                Hosts::Roce(
                    ids.map(|id| RoceHost::new(id, config.clone(), seed))
                        .collect(),
                )
            }
            Self::Infiniband(routing) => {
                let config = InfinibandConfig {
                    routing,
                    ..InfinibandConfig::default()
                };
                let host = |id| InfinibandHost::new(id, config.clone(), seed);
                Hosts::Infiniband(ids.map(host).collect())
            }
            Self::Uec(control) => {
                let config = UecConfig {
                    control,
                    ..UecConfig::default()
                };
                Hosts::Uec(ids.map(|id| UecHost::new(id, config, seed)).collect())
            }
            Self::UecTrimming => {
                let config = UecConfig::trimming();
                Hosts::Uec(ids.map(|id| UecHost::new(id, config, seed)).collect())
            }
            Self::Celeris => {
                let config = CelerisConfig::default();
                Hosts::Celeris(ids.map(|id| CelerisHost::new(id, config, seed)).collect())
            }
        };
        Ok(hosts)
    }
}

/// With how many others each host has to do.
fn peers(hosts: HostId, pairs: &[(HostId, HostId)]) -> Vec<usize> {
    (0..hosts)
        .map(|host| {
            (0..hosts)
                .filter(|&other| pairs.contains(&(host, other)) || pairs.contains(&(other, host)))
                .count()
        })
        .collect()
}
