//! Flow control of a port's link: what its sender may send, and what the switch at its end holds.

use super::{FlowControl, Port};
use crate::time::Time;

impl Port {
    pub(super) fn may_send(&self, bytes: u32) -> bool {
        match self.config.flow {
            FlowControl::None => true,
            FlowControl::Pause { .. } => !self.paused,
            FlowControl::Credit { bytes: credit } => self.held_bytes + u64::from(bytes) <= credit,
        }
    }

    /// A data packet starts: room at the far end that it takes.
    pub(super) fn take_credit(&mut self, bytes: u32) {
        if matches!(self.config.flow, FlowControl::Credit { .. }) {
            self.hold(bytes);
        }
    }

    /// A copy of a packet takes room at the far end, too. Nobody asked for credit for it.
    pub(crate) fn copied(&mut self, bytes: u32) {
        if matches!(self.config.flow, FlowControl::Credit { .. }) {
            self.held_bytes += u64::from(bytes);
        }
    }

    fn hold(&mut self, bytes: u32) {
        self.held_bytes += u64::from(bytes);
        self.statistics.max_held_bytes = self.statistics.max_held_bytes.max(self.held_bytes);
    }

    /// A data packet of this link has come to the switch at its end: whether it is taken, and whether the link is to be paused.
    pub(crate) fn came(&mut self, bytes: u32) -> (bool, bool) {
        let FlowControl::Pause {
            xoff_bytes,
            xon_bytes,
            headroom_bytes,
        } = self.config.flow
        else {
            return (true, false);
        };
        let with = self.held_bytes.saturating_add(u64::from(bytes));
        let taken = with <= xoff_bytes.saturating_add(headroom_bytes);
        // A pause that nothing held would ever end is none.
        let ask = !self.asked && with > xoff_bytes && (taken || self.held_bytes > xon_bytes);
        self.asked |= ask;
        if taken {
            self.hold(bytes);
        }
        (taken, ask)
    }

    /// A data packet of this link has left the switch at its end. Whether a pause is over.
    pub(crate) fn gone(&mut self, bytes: u32) -> bool {
        self.held_bytes -= u64::from(bytes);
        let FlowControl::Pause { xon_bytes, .. } = self.config.flow else {
            return false;
        };
        let over = self.asked && self.held_bytes <= xon_bytes;
        self.asked &= !over;
        over
    }

    /// The far end says pause, or go on.
    pub(crate) fn set_paused(&mut self, now: Time, paused: bool) {
        self.statistics.pauses += u64::from(paused && !self.paused);
        self.paused = paused;
        if !paused {
            self.end_block(now);
        }
    }

    pub(super) fn end_block(&mut self, now: Time) {
        if let Some(since) = self.blocked_since.take() {
            self.statistics.blocked += now.since(since);
        }
    }

    /// For how long it was paused, or had data and no credit, up to now.
    #[must_use]
    pub fn blocked(&self, now: Time) -> Time {
        self.statistics.blocked
            + self
                .blocked_since
                .map_or(Time::ZERO, |since| now.since(since))
    }

    /// Data bytes of this link in the switch at its end, or (with credits) on their way there or not given back yet.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// Whether the switch at its end never held more than it may.
    pub(super) fn kept_to_flow_control(&self) -> bool {
        let most = self.statistics.max_held_bytes;
        match self.config.flow {
            FlowControl::None => true,
            FlowControl::Pause {
                xoff_bytes,
                headroom_bytes,
                ..
            } => most <= xoff_bytes.saturating_add(headroom_bytes),
            FlowControl::Credit { bytes } => most <= bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{port, put};
    use super::super::{FlowControl, PortConfig};
    use crate::packet::{Class, Packets};
    use crate::time::Time;

    #[test]
    fn a_pause_is_asked_for_once_and_ends_lower() {
        let mut port = port(PortConfig {
            flow: FlowControl::Pause {
                xoff_bytes: 2_000,
                xon_bytes: 1_000,
                headroom_bytes: 5_000,
            },
            ..PortConfig::HOST
        });
        let mut asks = || port.came(1_000).1;
        assert_eq!(
            [asks(), asks(), asks(), asks()],
            [false, false, true, false]
        );
        assert_eq!(
            [port.gone(1_000), port.gone(1_000), port.gone(1_000)],
            [false, false, true]
        );
        assert!(!port.gone(1_000));
    }

    #[test]
    fn without_credit_data_waits_and_control_does_not() {
        let mut port = port(PortConfig {
            flow: FlowControl::Credit { bytes: 1_500 },
            ..PortConfig::HOST
        });
        let mut packets = Packets::new();
        for _ in 0..2 {
            put(&mut port, &mut packets, 1_000, Class::Data).1.unwrap();
        }
        assert!(port.start(Time::ZERO, &packets).is_some());
        assert!(port.start(Time::from_us(1), &packets).is_none());
        put(&mut port, &mut packets, 500, Class::Control).1.unwrap();
        assert_eq!(
            port.start(Time::from_us(2), &packets).map(|s| s.data),
            Some(false)
        );
        assert!(port.start(Time::from_us(3), &packets).is_none());
        port.gone(1_000);
        assert!(port.start(Time::from_us(4), &packets).is_some());
        assert_eq!(port.statistics.blocked, Time::from_us(3));
    }
}
