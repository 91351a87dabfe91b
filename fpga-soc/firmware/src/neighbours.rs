//! Who has which Ethernet address, learned from what passes by.

use core::net::Ipv4Addr;

use crate::frame::Mac;

/// How many are known at one time: one more than there are connections.
const KNOWN: usize = 3;

/// A few neighbours. The one that was learned longest ago makes room.
#[derive(Debug, Default)]
pub struct Neighbours {
    known: [Option<(Ipv4Addr, Mac)>; KNOWN],
}

impl Neighbours {
    /// Learns, or learns anew.
    pub fn learn(&mut self, address: Ipv4Addr, mac: Mac) {
        let is_unicast = mac[0] & 1 == 0 && mac != [0; 6];
        if !is_unicast || address.is_unspecified() || self.find(address) == Some(mac) {
            return;
        }
        let place = self
            .known
            .iter()
            .position(|known| known.is_none_or(|(of, _)| of == address))
            .unwrap_or(KNOWN - 1);
        if let Some(older) = self.known.get_mut(..=place) {
            older.rotate_right(1);
        }
        self.known[0] = Some((address, mac));
    }

    /// Whose address is this?
    #[must_use]
    pub fn find(&self, address: Ipv4Addr) -> Option<Mac> {
        let mut known = self.known.iter().flatten();
        known.find(|(of, _)| *of == address).map(|(_, mac)| *mac)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_known() {
        let address = |last| Ipv4Addr::new(192, 0, 2, last);
        let mut neighbours = Neighbours::default();
        for last in 1..=4 {
            neighbours.learn(address(last), [2, 0, 0, 0, 0, last]);
        }
        neighbours.learn(address(3), [2, 0, 0, 0, 1, 3]);
        assert_eq!(neighbours.find(address(1)), None);
        assert_eq!(neighbours.find(address(2)), Some([2, 0, 0, 0, 0, 2]));
        assert_eq!(neighbours.find(address(3)), Some([2, 0, 0, 0, 1, 3]));
        neighbours.learn(address(9), [0xff; 6]);
        assert_eq!(neighbours.find(address(9)), None);
    }
}
