//! Those who watch the network: captures and traces see every packet where it passes, and change nothing.

use std::fmt;
use std::sync::{Arc, Mutex};

use crate::faults::Drop;
use crate::packet::{Class, Packet};
use crate::port::PortId;
use crate::time::Time;

/// What happens to a packet at a port. For each packet that comes to a port the events are, in this order: `Trimmed` and `Marked` if
/// it is, `Queued`, `Sent`, and `Delivered` once for every copy that arrives. `Dropped` ends the list at any place: one for which there is no room
/// is dropped without having been queued, one that is lost on the wire instead of being sent, and one whose link goes down on the way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketEvent {
    /// The queue was full, and cut off its payload to keep the rest.
    Trimmed,
    /// The queue was long, and set its ECN field to [`Ecn::Ce`](crate::packet::Ecn::Ce).
    Marked,
    /// The port took it into its queue.
    Queued,
    /// Its first bit is on the line.
    Sent,
    /// It is at the other end of the port's wire.
    Delivered,
    /// It is gone.
    Dropped(Drop),
}

/// The name of a reason in captures and traces: `queue_full`, say.
#[must_use]
pub fn reason_name(reason: Drop) -> String {
    snake_case(&format!("{reason:?}"))
}

/// `QueueFull` as `queue_full`.
pub(crate) fn snake_case(variant: &str) -> String {
    let mut name = String::new();
    for (index, letter) in variant.chars().enumerate() {
        if letter.is_ascii_uppercase() && index > 0 {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

/// Something that watches. It is called with the packet as it is after the event. Whatever is not of interest is ignored by default.
///
/// It is `Send` so that a network with an observer can be given to another thread as one without can.
pub trait Observer: Send {
    /// Something happened to a packet at a port.
    fn packet(&mut self, now: Time, port: PortId, packet: &Packet, event: PacketEvent);

    /// A port was told by the other end of its wire to stop sending a class (priority flow control), or to go on.
    fn paused(&mut self, now: Time, port: PortId, class: Class, paused: bool) {
        let _ = (now, port, class, paused);
    }

    /// A port's link went up or down.
    fn link(&mut self, now: Time, port: PortId, up: bool) {
        let _ = (now, port, up);
    }
}

/// The way to keep hold of an observer that was given to a network.
impl<O: Observer + ?Sized> Observer for Arc<Mutex<O>> {
    fn packet(&mut self, now: Time, port: PortId, packet: &Packet, event: PacketEvent) {
        if let Ok(mut observer) = self.lock() {
            observer.packet(now, port, packet, event);
        }
    }

    fn paused(&mut self, now: Time, port: PortId, class: Class, paused: bool) {
        if let Ok(mut observer) = self.lock() {
            observer.paused(now, port, class, paused);
        }
    }

    fn link(&mut self, now: Time, port: PortId, up: bool) {
        if let Ok(mut observer) = self.lock() {
            observer.link(now, port, up);
        }
    }
}

/// Two that watch: a capture and a trace, say.
impl<A: Observer, B: Observer> Observer for (A, B) {
    fn packet(&mut self, now: Time, port: PortId, packet: &Packet, event: PacketEvent) {
        self.0.packet(now, port, packet, event);
        self.1.packet(now, port, packet, event);
    }

    fn paused(&mut self, now: Time, port: PortId, class: Class, paused: bool) {
        self.0.paused(now, port, class, paused);
        self.1.paused(now, port, class, paused);
    }

    fn link(&mut self, now: Time, port: PortId, up: bool) {
        self.0.link(now, port, up);
        self.1.link(now, port, up);
    }
}

/// The place of an observer in a network: empty at first, and in a copy of the network, since there is one observer only.
#[derive(Default)]
pub struct Watch(pub Option<Box<dyn Observer>>);

impl Watch {
    /// Whether somebody watches.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.0.is_some()
    }

    /// Tells whoever watches.
    #[inline]
    pub fn packet(&mut self, now: Time, port: PortId, packet: &Packet, event: PacketEvent) {
        if let Some(observer) = &mut self.0 {
            observer.packet(now, port, packet, event);
        }
    }

    /// Tells whoever watches.
    pub fn paused(&mut self, now: Time, port: PortId, class: Class, paused: bool) {
        if let Some(observer) = &mut self.0 {
            observer.paused(now, port, class, paused);
        }
    }

    /// Tells whoever watches.
    pub fn link(&mut self, now: Time, port: PortId, up: bool) {
        if let Some(observer) = &mut self.0 {
            observer.link(now, port, up);
        }
    }
}

impl Clone for Watch {
    fn clone(&self) -> Self {
        Self(None)
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_watched() {
            "Watch(watched)"
        } else {
            "Watch(nobody)"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Counter(Vec<PacketEvent>);

    impl Observer for Counter {
        fn packet(&mut self, _: Time, _: PortId, _: &Packet, event: PacketEvent) {
            self.0.push(event);
        }
    }

    #[test]
    fn reasons_have_names() {
        assert_eq!(reason_name(Drop::QueueFull), "queue_full");
        assert_eq!(reason_name(Drop::Loss), "loss");
    }

    #[test]
    fn one_observer_is_told_through_all_handles() {
        let counter = Arc::new(Mutex::new(Counter::default()));
        let mut watch = Watch(Some(Box::new((counter.clone(), counter.clone()))));
        let event = PacketEvent::Dropped(Drop::QueueFull);
        watch.packet(Time::ZERO, 0, &Packet::default(), event);
        watch
            .clone()
            .packet(Time::ZERO, 0, &Packet::default(), PacketEvent::Sent);
        watch.paused(Time::ZERO, 0, Class::Data, true);
        assert_eq!(
            counter.lock().map(|c| c.0.clone()).ok(),
            Some(vec![event; 2])
        );
        assert!(watch.is_watched() && !watch.clone().is_watched());
    }
}
