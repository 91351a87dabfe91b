//! Losses found without trimming, by the rules that htsim calls SLEEK: so much is out of order at the receiver that it
//! is not spraying, or a probe came back without delay while packets sent before it are unanswered.
//!
//! Constants are those of htsim's `uec.cpp` (`loss_retx_factor`, `min_retx_config`, `probe_first_trial_time`,
//! `probe_retry_time`). Two things are not. htsim takes what was sent after a probe for lost, too, when it is answered: where many
//! flows share a line that sent a sixth of all packets twice though none was lost. And there a loss found here says nothing about its path
//! (`penalizePath` is commented out); here it counts as a timeout, or a path that swallows packets would be used for ever.

use core::ops::Range;

use crate::time::Time;

/// So many windows out of order are a loss ...
const WINDOWS: f64 = 1.5;
/// ... if they are at least so many packets.
const PACKETS: u64 = 5;
/// Round trips without an acknowledgment before a probe, while there is more to send.
const FIRST_PROBE_RTTS: u64 = 3;
/// Round trips between probes.
const NEXT_PROBE_RTTS: u64 = 5;

/// What an acknowledgment says of order, and how large the window is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    /// The next packet expected.
    pub cumulative: u64,
    /// Packets beyond it that have arrived.
    pub out_of_order: u64,
    /// The next new packet.
    pub next_psn: u64,
    /// The window in packets.
    pub window: u64,
    /// The largest window in packets.
    pub max_window: u64,
}

/// Loss recovery of one sender.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sleek {
    recovering: bool,
    /// Recovery ends when everything below was acknowledged.
    until: u64,
    /// Below this, packets were sent again already.
    resent: u64,
    probe_at: Option<Time>,
    probe: u64,
    probe_sent: Time,
    /// The next new packet when it was sent.
    probe_psn: u64,
}

impl Sleek {
    /// Whether losses are being made good, which the window does not hold up.
    pub fn is_recovering(&self) -> bool {
        self.recovering
    }

    /// When the next probe is due.
    pub fn deadline(&self) -> Option<Time> {
        self.probe_at
    }

    /// An acknowledgment has come. A probe follows later if `more` is to be sent, sooner if packets are on their way and
    /// nothing will push them (`more` false), and never with `more` unknown.
    pub fn on_ack(&mut self, now: Time, base_rtt: Time, target: Time, more: Option<bool>) {
        self.probe_at = more.map(|more| {
            now + if more {
                Time::from_ps(FIRST_PROBE_RTTS * base_rtt.ps())
            } else {
                base_rtt + target
            }
        });
    }

    /// The number of a probe that is sent now, before a new packet `next_psn`; another follows if `more` is known.
    pub fn probe(&mut self, now: Time, base_rtt: Time, more: Option<bool>, next_psn: u64) -> u64 {
        self.probe += 1;
        self.probe_sent = now;
        self.probe_psn = next_psn;
        self.probe_at = more.map(|_| now + Time::from_ps(NEXT_PROBE_RTTS * base_rtt.ps()));
        self.probe
    }

    /// The round trip of a probe, if it is the last that was sent.
    pub fn probe_rtt(&self, now: Time, number: u64) -> Option<Time> {
        (number == self.probe).then(|| now.since(self.probe_sent))
    }

    /// A probe has found the queues empty: whatever was sent before it and is not acknowledged is lost.
    pub fn drained(&mut self, order: &Order) {
        if self.probe_psn > order.cumulative {
            self.recovering = true;
            self.until = self.probe_psn;
            self.resent = order.cumulative;
        }
    }

    /// The packets that are lost if they are in flight. `pending`: some are known to be lost and wait to be sent.
    pub fn losses(&mut self, order: &Order, pending: bool) -> Range<u64> {
        if self.recovering && order.cumulative >= self.until {
            self.recovering = false;
        }
        if !self.recovering {
            let windows = (order.window as f64 * WINDOWS) as u64;
            if pending || order.out_of_order < windows.min(order.max_window).max(PACKETS) {
                return 0..0;
            }
            self.recovering = true;
            self.until = order.next_psn;
        }
        let from = order.cumulative.max(self.resent);
        from..self.until.min(order.cumulative + order.window)
    }

    /// This packet was in flight and will be sent again.
    pub fn resends(&mut self, psn: u64) {
        self.resent = psn + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(cumulative: u64, out_of_order: u64) -> Order {
        Order {
            cumulative,
            out_of_order,
            next_psn: 100,
            window: 20,
            max_window: 62,
        }
    }

    #[test]
    fn a_window_and_a_half_out_of_order_is_a_loss_once() {
        let mut sleek = Sleek::default();
        assert!(sleek.losses(&order(50, 29), false).is_empty());
        assert!(sleek.losses(&order(50, 30), true).is_empty());
        assert_eq!(sleek.losses(&order(50, 30), false), 50..70);
        sleek.resends(50);
        assert_eq!(sleek.losses(&order(50, 31), false), 51..70);
        assert!(sleek.is_recovering());
        assert!(sleek.losses(&order(100, 0), false).is_empty());
        assert!(!sleek.is_recovering());
    }

    #[test]
    fn small_windows_wait_for_five_packets_and_an_empty_network_for_none() {
        let mut sleek = Sleek::default();
        let small = |out_of_order| Order {
            window: 1,
            ..order(50, out_of_order)
        };
        assert!(sleek.losses(&small(4), false).is_empty());
        assert_eq!(sleek.losses(&small(5), false), 50..51);
        let mut sleek = Sleek::default();
        sleek.probe(Time::ZERO, Time::from_us(14), Some(true), 60);
        // What was sent after the probe may still be on its way.
        sleek.drained(&order(50, 0));
        assert_eq!(sleek.losses(&order(50, 0), false), 50..60);
        assert!(sleek.losses(&order(60, 0), false).is_empty());
        sleek.drained(&order(60, 0));
        assert!(!sleek.is_recovering());
    }

    #[test]
    fn probes_follow_silence() {
        let (rtt, target) = (Time::from_us(14), Time::from_us(10));
        let mut sleek = Sleek::default();
        sleek.on_ack(Time::ZERO, rtt, target, Some(true));
        assert_eq!(sleek.deadline(), Some(Time::from_us(42)));
        sleek.on_ack(Time::ZERO, rtt, target, Some(false));
        assert_eq!(sleek.deadline(), Some(Time::from_us(24)));
        let number = sleek.probe(Time::from_us(24), rtt, Some(false), 0);
        assert_eq!(sleek.deadline(), Some(Time::from_us(94)));
        let back = Time::from_us(40);
        assert_eq!(sleek.probe_rtt(back, number), Some(Time::from_us(16)));
        assert_eq!(sleek.probe_rtt(back, number + 1), None);
        sleek.on_ack(back, rtt, target, None);
        assert_eq!(sleek.deadline(), None);
    }
}
