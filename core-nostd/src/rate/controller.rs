//! What a congestion controller is to the rest of the core, and the choice of one.

use super::coupled::Coupled;
use crate::config::ControllerChoice;
use crate::time::Instant;

/// One packet in the fixed-point unit of windows and weights (16 fraction bits).
pub const ONE_PACKET: u32 = 1 << 16;

/// What a controller may know of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// The loop that a window has to fill, nanoseconds: the least round-trip time of full packets, and what the peer holds acknowledgments back.
    pub loop_rtt_ns: u32,
    /// This side's rate over all planes, Mbit/s.
    pub link_mbps: u32,
    /// Wire bytes of a full packet.
    pub packet_bytes: u32,
}

impl Network {
    /// Packets that `mbps` puts into one minimal round trip, fixed point.
    #[must_use]
    pub fn packets_per_rtt(&self, mbps: u32) -> u32 {
        // mbps * ns / 8000 = bytes; in packets with 16 fraction bits. The product is below 2^64 for 400 Gbit/s and 1 s.
        let bytes = u64::from(mbps) * u64::from(self.loop_rtt_ns) / 8_000;
        let packets = (bytes << 16) / u64::from(self.packet_bytes.max(1));
        packets.min(u64::from(u32::MAX / 4)) as u32
    }
}

/// Decides how much may be outstanding, on which paths, and how fast it leaves.
pub trait Controller {
    /// The path may carry packets from now on.
    fn open(&mut self, path: u8);

    /// The path carries nothing any more.
    fn close(&mut self, path: u8);

    /// `packets` of a path were acknowledged, of which `marked` carried CE. `limited`: the window was what held the sender back.
    fn acknowledged(&mut self, path: u8, packets: u32, marked: u32, limited: bool);

    /// `packets` of a path were lost in a way that speaks of congestion.
    fn lost(&mut self, path: u8, packets: u32);

    /// `packets` of a path were lost, and it does not look like congestion.
    fn lost_to_fabric(&mut self, path: u8, packets: u32);

    /// More than half of what was sent in a round trip was lost.
    fn collapsed(&mut self);

    /// The receiver told this sender its share; the measured network may have changed.
    fn hinted(&mut self, now: Instant, mbps: u32);

    /// The measured network changed.
    fn network(&mut self, network: Network);

    /// A burst starts after the connection had nothing outstanding.
    fn burst(&mut self, now: Instant);

    /// Time passes (called before sending).
    fn tick(&mut self, now: Instant);

    /// Packets that may be outstanding, fixed point.
    fn window(&self) -> u32;

    /// A path's share of the window, fixed point.
    fn weight(&self, path: u8) -> u32;

    /// The rate at which packets may leave, Mbit/s of wire bytes.
    fn pacing_mbps(&self) -> Option<u32>;

    /// Whether the receiver's hint is in force.
    fn is_hinted(&self) -> bool;
}

/// The controllers that a connection can be configured with.
#[derive(Debug)]
pub enum AnyController<const PATHS: usize> {
    /// ECN windows coupled over the paths, with the receiver's hints.
    Coupled(Coupled<PATHS>),
    /// A constant: the window is all there is, the rate is fixed or unlimited.
    Constant {
        /// Mbit/s of wire bytes, if limited.
        mbps: Option<u32>,
    },
}

/// Dispatches to the controller in use.
macro_rules! each {
    ($self:ident, $coupled:ident => $call:expr, $constant:expr) => {
        match $self {
            Self::Coupled($coupled) => $call,
            Self::Constant { .. } => $constant,
        }
    };
}

/// A window that never limits.
const UNLIMITED: u32 = u32::MAX / 2;

impl<const PATHS: usize> AnyController<PATHS> {
    /// The controller that was chosen.
    #[must_use]
    pub fn new(choice: ControllerChoice, network: Network) -> Self {
        match choice {
            ControllerChoice::Coupled => Self::Coupled(Coupled::new(network)),
            ControllerChoice::None => Self::Constant { mbps: None },
            ControllerChoice::FixedRate(mbps) => Self::Constant { mbps: Some(mbps) },
        }
    }
}

impl<const PATHS: usize> Controller for AnyController<PATHS> {
    fn open(&mut self, path: u8) {
        each!(self, c => c.open(path), ());
    }
    fn close(&mut self, path: u8) {
        each!(self, c => c.close(path), ());
    }
    #[inline]
    fn acknowledged(&mut self, path: u8, packets: u32, marked: u32, limited: bool) {
        each!(self, c => c.acknowledged(path, packets, marked, limited), ());
    }
    fn lost(&mut self, path: u8, packets: u32) {
        each!(self, c => c.lost(path, packets), ());
    }
    fn lost_to_fabric(&mut self, path: u8, packets: u32) {
        each!(self, c => c.lost_to_fabric(path, packets), ());
    }
    fn collapsed(&mut self) {
        each!(self, c => c.collapsed(), ());
    }
    #[inline]
    fn hinted(&mut self, now: Instant, mbps: u32) {
        each!(self, c => c.hinted(now, mbps), ());
    }
    fn network(&mut self, network: Network) {
        each!(self, c => c.network(network), ());
    }
    fn burst(&mut self, now: Instant) {
        each!(self, c => c.burst(now), ());
    }
    #[inline]
    fn tick(&mut self, now: Instant) {
        each!(self, c => c.tick(now), ());
    }
    #[inline]
    fn window(&self) -> u32 {
        each!(self, c => c.window(), UNLIMITED)
    }
    #[inline]
    fn weight(&self, path: u8) -> u32 {
        each!(self, c => c.weight(path), UNLIMITED)
    }
    #[inline]
    fn pacing_mbps(&self) -> Option<u32> {
        match self {
            Self::Coupled(c) => c.pacing_mbps(),
            Self::Constant { mbps } => *mbps,
        }
    }
    #[inline]
    fn is_hinted(&self) -> bool {
        each!(self, c => c.is_hinted(), false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bandwidth_delay_product_is_42_packets() {
        let network = Network {
            loop_rtt_ns: 14_090,
            link_mbps: 100_000,
            packet_bytes: 4214,
        };
        let packets = network.packets_per_rtt(100_000);
        assert_eq!(packets >> 16, 41);
        assert_eq!(
            Network {
                loop_rtt_ns: u32::MAX,
                packet_bytes: 1,
                ..network
            }
            .packets_per_rtt(u32::MAX),
            u32::MAX / 4
        );
    }

    #[test]
    fn constant_controllers_never_limit_the_window() {
        let network = Network {
            loop_rtt_ns: 14_090,
            link_mbps: 100_000,
            packet_bytes: 4214,
        };
        let mut fixed = AnyController::<4>::new(ControllerChoice::FixedRate(250), network);
        fixed.acknowledged(0, 10, 10, true);
        fixed.collapsed();
        assert_eq!(
            (fixed.window(), fixed.pacing_mbps()),
            (UNLIMITED, Some(250))
        );
        assert_eq!(
            AnyController::<4>::new(ControllerChoice::None, network).pacing_mbps(),
            None
        );
    }
}
