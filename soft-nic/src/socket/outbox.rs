//! Datagrams on their way out, packed into segmented sends.

use super::udp::Sent;
use super::{MAX_DATAGRAM, MAX_SEND, Senders, SocketCounts, UdpPort};
use metaroce_core::Ecn;
use metaroce_core::time::{Duration, Instant};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;

/// What datagrams of one send have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Label {
    pub plane: u8,
    pub entropy: u16,
    pub destination: SocketAddr,
    pub ecn: Ecn,
}

#[derive(Debug)]
struct Batch {
    label: Label,
    segment: usize,
    count: usize,
    /// A shorter datagram ends a segmented send.
    closed: bool,
    range: Range<usize>,
}

const ARENA: usize = 2 * 65_536;
/// A socket that takes nothing for this long loses what waits, so that it cannot hold up everything else.
const PATIENCE: Duration = Duration::from_millis(20);

/// Collects datagrams and sends runs of equal ones in one call.
#[derive(Debug)]
pub(crate) struct Outbox {
    arena: Vec<u8>,
    used: usize,
    waiting: VecDeque<Batch>,
    blocked: Option<(Arc<UdpPort>, Instant)>,
    /// Segments per send, learnt from the sockets.
    max_segments: usize,
}

impl Outbox {
    pub(crate) fn new() -> Self {
        Self {
            arena: vec![0; ARENA],
            used: 0,
            waiting: VecDeque::new(),
            blocked: None,
            max_segments: 1,
        }
    }

    /// Room for the next datagram, which becomes part of the outbox by [`Self::push`].
    pub(crate) fn space(&mut self) -> &mut [u8] {
        &mut self.arena[self.used..]
    }

    /// Adds the `length` bytes that were put into [`Self::space`], and sends what cannot be extended by them.
    pub(crate) fn push(
        &mut self,
        now: Instant,
        label: Label,
        length: usize,
        planes: &mut [Senders],
        counts: &mut SocketCounts,
    ) {
        let max_segments = self.max_segments;
        let range = self.used..self.used + length;
        let end = range.end;
        match self.waiting.back_mut() {
            Some(batch) if batch.takes(&label, length, max_segments) => {
                batch.range.end = range.end;
                batch.count += 1;
                batch.closed = length < batch.segment;
            }
            _ => {
                self.flush(now, planes, counts);
                self.waiting.push_back(Batch {
                    label,
                    segment: length,
                    count: 1,
                    closed: false,
                    range,
                });
            }
        }
        self.used = end;
        if self.arena.len() - self.used < MAX_DATAGRAM {
            self.flush(now, planes, counts);
        }
    }

    /// Adds a copy of a datagram. The caller has seen [`Self::is_blocked`].
    pub(crate) fn push_copy(
        &mut self,
        now: Instant,
        label: Label,
        bytes: &[u8],
        planes: &mut [Senders],
        counts: &mut SocketCounts,
    ) {
        if let Some(space) = self.space().get_mut(..bytes.len()) {
            space.copy_from_slice(bytes);
            self.push(now, label, bytes.len(), planes, counts);
        }
    }

    /// Sends everything, unless a socket is full.
    pub(crate) fn flush(
        &mut self,
        now: Instant,
        planes: &mut [Senders],
        counts: &mut SocketCounts,
    ) {
        while let Some(batch) = self.waiting.front() {
            let (taken, sent) = match self.send(batch, planes, counts) {
                Ok((taken, sent)) => (taken, Ok(sent)),
                Err(error) => (batch.count, Err(error)),
            };
            let bytes = batch.range.len().min(taken * batch.segment);
            match sent {
                Ok(Sent::Yes) => {
                    counts.sends += 1;
                    counts.sent_datagrams += taken as u64;
                    counts.sent_bytes += bytes as u64;
                }
                Ok(Sent::Refused(error)) => {
                    counts.send_refused += taken as u64;
                    counts.last_send_error = Some(error);
                }
                Ok(Sent::Blocked) => {
                    counts.send_blocked += 1;
                    let since = self.blocked.as_ref().map_or(now, |(_, since)| *since);
                    if now.since(since) < PATIENCE {
                        let entropy = batch.label.entropy;
                        let port = planes
                            .get_mut(usize::from(batch.label.plane))
                            .map(|plane| plane.get(entropy, counts).cloned());
                        if let Some(Ok(port)) = port {
                            self.blocked = Some((port, since));
                            return;
                        }
                    }
                    counts.send_refused += taken as u64;
                }
                Err(error) => {
                    counts.send_refused += taken as u64;
                    counts.last_send_error = error.raw_os_error();
                }
            }
            self.blocked = None;
            if let Some(batch) = self.waiting.front_mut() {
                batch.count -= taken;
                batch.range.start += bytes;
                if batch.count == 0 {
                    self.waiting.pop_front();
                }
            }
        }
        self.used = 0;
    }

    /// Whether a full socket holds things up: nothing more may be pushed until [`Self::flush`] got through.
    pub(crate) const fn is_blocked(&self) -> bool {
        self.blocked.is_some()
    }

    /// The socket to wait for, if one is full.
    pub(crate) fn blocked_port(&self) -> Option<Arc<UdpPort>> {
        self.blocked.as_ref().map(|(port, _)| port.clone())
    }

    /// When a full socket's datagrams are given up.
    pub(crate) fn gives_up_at(&self) -> Option<Instant> {
        self.blocked.as_ref().map(|(_, since)| *since + PATIENCE)
    }

    /// Sends a batch, or its first datagram where segmentation is not to be had. Returns how many it tried to send.
    fn send(
        &self,
        batch: &Batch,
        planes: &mut [Senders],
        counts: &mut SocketCounts,
    ) -> std::io::Result<(usize, Sent)> {
        let plane = planes
            .get_mut(usize::from(batch.label.plane))
            .ok_or(std::io::ErrorKind::NotFound)?;
        let port = plane.get(batch.label.entropy, counts)?;
        let contents = &self.arena[batch.range.clone()];
        if batch.count <= port.max_segments() {
            let sent = port.send(
                batch.label.destination,
                batch.label.ecn,
                contents,
                batch.segment,
            );
            if batch.count == 1 || port.max_segments() > 1 {
                return Ok((batch.count, sent));
            }
        }
        // Segmentation is not to be had on this device after all: one by one.
        let datagram = &contents[..contents.len().min(batch.segment)];
        let sent = port.send(
            batch.label.destination,
            batch.label.ecn,
            datagram,
            batch.segment,
        );
        Ok((1, sent))
    }

    /// Tells how many segments the sockets can send at once.
    pub(crate) const fn set_max_segments(&mut self, segments: usize) {
        self.max_segments = segments;
    }
}

impl Batch {
    fn takes(&self, label: &Label, length: usize, max_segments: usize) -> bool {
        !self.closed
            && self.label == *label
            && length <= self.segment
            && self.count < max_segments
            && self.range.len() + length <= MAX_SEND
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::Inbox;

    /// What has come, once it is as much as expected: a busy system may deliver a little later, on loopback too.
    fn received(
        target: &UdpPort,
        expected: usize,
        counts: &mut SocketCounts,
    ) -> Vec<(Ecn, Vec<u8>)> {
        // Only so that a failure ends.
        let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
        let mut inbox = Inbox::new();
        let mut seen = Vec::new();
        loop {
            let came = inbox.receive(target, counts, |_, ecn, bytes| {
                seen.push((ecn, bytes.to_vec()));
            });
            // More than expected is to be seen, too.
            let enough = seen.len() >= expected || std::time::Instant::now() >= end;
            if came == 0 && enough {
                return seen;
            }
        }
    }

    #[test]
    fn runs_are_packed_and_arrive_one_by_one() {
        let target = UdpPort::bind("127.0.0.1:0".parse().unwrap(), 65_536, 1 << 20).unwrap();
        let mut planes = [Senders::new(
            "127.0.0.1:0".parse().unwrap(),
            2,
            None,
            1 << 20,
        )];
        let mut counts = SocketCounts::default();
        let mut outbox = Outbox::new();
        outbox.set_max_segments(64);
        let label = |entropy, ecn| Label {
            plane: 0,
            entropy,
            destination: target.address(),
            ecn,
        };
        let mut send = |label, length: usize, fill: u8| {
            outbox.space()[..length].fill(fill);
            outbox.push(Instant::ZERO, label, length, &mut planes, &mut counts);
        };
        for fill in 0..15 {
            send(label(0, Ecn::Ect0), 4_000, fill);
        }
        send(label(0, Ecn::Ect0), 100, 15);
        send(label(0, Ecn::Ect0), 100, 16);
        send(label(1, Ecn::Ect0), 100, 17);
        send(label(1, Ecn::NotEct), 100, 18);
        send(label(1, Ecn::NotEct), 101, 19);
        outbox.flush(Instant::ZERO, &mut planes, &mut counts);
        assert_eq!((counts.sends, counts.sent_datagrams), (5, 20));
        assert_eq!(counts.sent_bytes, 15 * 4_000 + 501);

        let seen: Vec<_> = received(&target, 20, &mut counts)
            .into_iter()
            .map(|(ecn, bytes)| (bytes[0], bytes.len(), ecn))
            .collect();
        let expected: Vec<_> = (0..20u8)
            .map(|fill| {
                let length = if fill < 15 {
                    4_000
                } else if fill == 19 {
                    101
                } else {
                    100
                };
                (
                    fill,
                    length,
                    if fill < 18 { Ecn::Ect0 } else { Ecn::NotEct },
                )
            })
            .collect();
        assert_eq!(seen, expected);
        assert_eq!(counts.received_datagrams, 20);
    }

    #[test]
    fn what_the_system_refuses_is_counted_and_the_rest_goes_on() {
        let target = UdpPort::bind("127.0.0.1:0".parse().unwrap(), 65_536, 1 << 20).unwrap();
        let mut planes = [Senders::new(
            "127.0.0.1:0".parse().unwrap(),
            1,
            None,
            1 << 20,
        )];
        let mut counts = SocketCounts::default();
        let mut outbox = Outbox::new();
        // From a loopback address the system sends nowhere else.
        let elsewhere = Label {
            plane: 0,
            entropy: 0,
            destination: "192.0.2.1:9".parse().unwrap(),
            ecn: Ecn::NotEct,
        };
        let here = Label {
            destination: target.address(),
            ..elsewhere
        };
        outbox.push_copy(Instant::ZERO, elsewhere, b"lost", &mut planes, &mut counts);
        outbox.push_copy(
            Instant::ZERO,
            Label { plane: 7, ..here },
            b"lost",
            &mut planes,
            &mut counts,
        );
        outbox.push_copy(Instant::ZERO, here, b"found", &mut planes, &mut counts);
        outbox.flush(Instant::ZERO, &mut planes, &mut counts);
        assert_eq!((counts.send_refused, counts.sends), (2, 1));
        let seen = received(&target, 1, &mut counts);
        assert_eq!(seen, [(Ecn::NotEct, b"found".to_vec())]);
    }
}
