//! Which path carries the next new packet, and which paths may.

use super::Connection;
use crate::rate::controller::Controller;

impl<const PATHS: usize, const SLOTS: usize, const STREAMS: usize, const MESSAGES: usize>
    Connection<PATHS, SLOTS, STREAMS, MESSAGES>
{
    /// The path for the next new packet. It stays out of the wheel until [`Self::carried`].
    #[cfg_attr(not(feature = "small"), inline(always))]
    pub(super) fn pick_path(&mut self, window: u32, busy: u8) -> Option<u8> {
        if self.run_left != 0 {
            let path = self.run_path;
            if self.has_room(path) {
                return Some(path);
            }
            self.end_run(window);
        }
        self.follow_window(window);
        let found = if busy == 0 {
            self.next_with_room()
        } else {
            self.next_free(busy)
        };
        if let Some(path) = found {
            self.run_path = path;
            self.run_left = self.config.run;
            self.run_carried = 0;
        }
        found
    }

    /// Takes the path out of the wheel whose turn it is, of those that may carry another packet.
    #[cfg_attr(not(feature = "small"), inline(always))]
    fn next_with_room(&mut self) -> Option<u8> {
        while let Some(path) = self.wheel.take() {
            if u16::from(path) >= self.path_limit {
                self.reserve.insert(path);
            } else if self.has_room(path) {
                return Some(path);
            }
        }
        None
    }

    /// The same, where the lines of some planes are busy: their paths keep their turn.
    // spec: MR-PATH-023
    #[inline(never)]
    fn next_free(&mut self, busy: u8) -> Option<u8> {
        if !busy & self.all_planes() == 0 {
            return None;
        }
        let mut held = [0; PATHS];
        let mut count = 0;
        let mut found = None;
        while let Some(path) = self.next_with_room() {
            if !self.is_on(path, busy) {
                found = Some(path);
                break;
            }
            if let Some(place) = held.get_mut(count) {
                *place = path;
                count += 1;
            }
        }
        for &path in held.iter().take(count).rev() {
            self.wheel.put_back(path);
        }
        found
    }

    /// Whether a path waits for its turn.
    pub(super) fn has_waiting(&self) -> bool {
        !self.wheel.is_empty()
    }

    /// The planes that both sides have.
    fn all_planes(&self) -> u8 {
        u8::MAX >> 8_u32.saturating_sub(u32::from(self.agreed.planes.max(1)))
    }

    /// Whether a path is of one of these planes.
    fn is_on(&self, path: u8, planes: u8) -> bool {
        planes >> (self.send_paths.at(u16::from(path)).plane & 7) & 1 != 0
    }

    /// The path whose lost packet is sent next.
    #[cfg_attr(not(feature = "small"), inline(always))]
    pub(super) fn next_lost(&self, busy: u8) -> Option<u8> {
        if busy == 0 {
            return self.lost_paths.next_from(self.lost_next);
        }
        let mut free = self.lost_paths;
        for path in self
            .lost_paths
            .iter()
            .filter(|&path| self.is_on(path, busy))
        {
            free.remove(path);
        }
        free.next_from(self.lost_next)
    }

    /// Whether a path may carry another packet. Its weight allows for a whole run at least, as for a packet where runs
    /// are of one.
    #[inline]
    fn has_room(&self, path: u8) -> bool {
        let weight = self
            .controller
            .weight(path)
            .max(u32::from(self.config.run) << 16);
        let window = if self.has_error() {
            u32::from(self.agreed.window)
        } else {
            self.data_window()
        };
        self.send_paths.at(u16::from(path)).has_room(weight, window)
    }

    /// How many PSNs ahead a path may be with anything but an ERROR: some are kept, so that what the peer refuses cannot keep
    /// the report of what this side refuses from it.
    #[cfg_attr(not(feature = "small"), inline(always))]
    pub(super) fn data_window(&self) -> u32 {
        u32::from(self.agreed.window - (self.agreed.window >> 6))
    }

    /// Nothing was sent after all.
    pub(super) fn unpick_path(&mut self, path: u8) {
        if self.run_carried == 0 {
            self.run_left = 0;
            self.wheel.insert(path);
        }
    }

    /// A path carried a packet: its turn goes on or ends.
    #[cfg_attr(not(feature = "small"), inline(always))]
    pub(super) fn carried(&mut self, path: u8, window: u32) {
        debug_assert_eq!(path, self.run_path);
        self.run_carried += 1;
        self.run_left -= 1;
        if self.run_left == 0 {
            self.end_run(window);
        }
    }

    #[cfg_attr(not(feature = "small"), inline(always))]
    pub(super) fn end_run(&mut self, window: u32) {
        let path = self.run_path;
        self.run_left = 0;
        let weight = self.controller.weight(path);
        if self.run_carried != 0 {
            self.wheel.charge(
                path,
                u32::from(self.run_carried),
                weight,
                window,
                self.usable_count.max(1),
            );
        }
        self.run_carried = 0;
        self.offer(path);
    }

    /// A run of packets over one path is not finished: what comes next belongs behind it.
    pub(crate) const fn in_run(&self) -> bool {
        self.run_left != 0
    }

    /// Lets a path wait for its turn if it may carry.
    #[cfg_attr(not(feature = "small"), inline(always))]
    pub(super) fn offer(&mut self, path: u8) {
        if self.run_left != 0 && path == self.run_path {
            return;
        }
        if self.has_room(path) {
            if u16::from(path) < self.path_limit {
                self.wheel.insert(path);
            } else {
                self.reserve.insert(path);
            }
        }
    }

    /// At most as many paths as there are packets in the window are used, or each would be too sparse for the loss rule to see.
    #[inline]
    // spec: MR-PATH-017
    pub(super) fn follow_window(&mut self, window: u32) {
        let packets = (window.min(255 << 16).div_ceil(1 << 16)).max(1) as u16;
        let count = self.usable_count;
        let key = (packets as u8, count as u8);
        if key == self.path_limit_key {
            return;
        }
        self.path_limit_key = key;
        self.path_limit = if packets >= count {
            256
        } else {
            self.usable
                .iter()
                .nth(usize::from(packets))
                .map_or(256, u16::from)
        };
        for path in self.reserve.iter() {
            if u16::from(path) < self.path_limit {
                self.reserve.remove(path);
                self.offer(path);
            }
        }
    }
}
