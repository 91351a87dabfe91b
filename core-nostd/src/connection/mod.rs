//! A connection: the parts put together. What happens when is in the siblings; what each part does is in its own module.
//!
//! * `inbound`: DATA in.
//! * `requests`: the peer's messages in their turn: receives, READs, atomics, refusals.
//! * `acknowledgment`: ACK in; losses, round-trip times, windows.
//! * `outbound`: what is sent next; `control`: what is not data; `pieces`: which part of which message;
//!   `routes`: over which path; `packet`: how it is written.
//! * `post`: work requests in, completions out.
//! * `failover`: paths in doubt, FENCE, other source ports.
//! * `timers`: what happens when nothing does.
//! * `lifecycle`: establishing and ending.

mod acknowledgment;
mod control;
mod failover;
mod inbound;
mod lifecycle;
mod outbound;
mod packet;
mod pieces;
mod post;
mod prediction;
mod requests;
mod routes;
mod run;
mod timers;

use crate::config::{ConnectionConfig, EndpointConfig};
use crate::handshake::Agreed;
use crate::memory::Regions;
use crate::message::incoming::InTable;
use crate::message::outgoing::{self, OutMessage, OutTable};
use crate::message::receives::Receives;
use crate::message::stream::Stream;
use crate::path::entropy::EntropyChooser;
use crate::path::inflight::{List, Slots};
use crate::path::receive::ReceivePath;
use crate::path::rtt::{MinimumRtt, Rtt};
use crate::path::send::{PathState, SendPath};
use crate::rate::controller::{AnyController, Controller, Network};
use crate::rate::pacer::Pacer;
use crate::spray::Wheel;
use crate::stats::{ConnectionStatistics, Counters, PathStatistics, PathWindow};
use crate::storage::{Bits, Table};
use crate::time::Instant;
use crate::wire::{CloseMode as WireCloseMode, Cookie, Planes, Trailer};
use crate::work::{CloseReason, ConnectionHandle};

pub(crate) use inbound::DataPacket;
pub(crate) use packet::Template;
pub(crate) use prediction::{Prediction, Varying};
pub(crate) use timers::Timer;
use timers::Timers;

/// The stream of responses, errors and withdrawn packets.
pub(crate) const RESPONSE_STREAM: u16 = u16::MAX;
/// Numbers of responses have this bit; those of requests do not.
pub(crate) const RESPONSE_BIT: u16 = 1 << 14;

/// What an endpoint's connections have in common.
#[derive(Debug)]
pub(crate) struct Shared<const REGIONS: usize, const RECEIVES: usize> {
    pub config: EndpointConfig,
    pub regions: Regions<REGIONS>,
    pub receives: Receives<RECEIVES>,
    /// The rate hint that peers are told, Mbit/s: brought up to date before a connection that
    /// [wants](Connection::wants_hint) it sends.
    pub hint_mbps: u32,
    /// Bit p: the line of plane p takes no data now.
    pub busy_planes: u8,
    /// The connection that was asked last has data for them.
    pub held_back: bool,
    /// What the latest packet's message has in common; dropped when a message number may mean another message.
    pub template: Template,
    /// What the next DATA packet is expected to be.
    pub prediction: Prediction,
}

/// Where a connection is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// INIT is sent until it is answered.
    Connecting,
    /// Messages may flow.
    Established,
    /// This side wants to end: its own work is finished, then CLOSE is sent until it is answered.
    Closing,
    /// The peer wants to end: this side's work is finished, then CLOSE_ACK is sent.
    PeerClosing,
    /// Over; repeated CLOSEs are answered for a while.
    Lingering,
    /// Over.
    Closed,
}

/// Things other than data that are due to be sent.
pub(crate) mod due {
    pub const INIT: u16 = 1;
    pub const ACCEPT: u16 = 2;
    pub const CLOSE: u16 = 4;
    pub const CLOSE_ACK: u16 = 8;
    pub const ANNOUNCE: u16 = 16;
    pub const HINT: u16 = 32;
    pub const PROBES: u16 = 64;
    pub const FENCES: u16 = 128;
    pub const FENCE_ACKS: u16 = 256;
}

/// A round trip's worth of observations over all paths.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Epoch {
    pub acknowledged: u16,
    pub lost: u16,
    pub marked: u16,
}

impl Epoch {
    /// More than `percent` of at least so many packets were lost, and at least `least` of them.
    pub fn lost_more_than(self, percent: u32, least: u16) -> bool {
        let all = u32::from(self.acknowledged) + u32::from(self.lost);
        self.lost >= least && u32::from(self.lost) * 100 > all * percent
    }
}

/// One connection with room for `PATHS` paths, `SLOTS` outstanding packets, `STREAMS` streams and `MESSAGES` open messages
/// (requests, responses and incoming ones, each).
#[derive(Debug)]
pub struct Connection<
    const PATHS: usize,
    const SLOTS: usize,
    const STREAMS: usize,
    const MESSAGES: usize,
> {
    // Identity.
    pub(crate) local_id: u32,
    pub(crate) peer_id: u32,
    pub(crate) state: State,
    pub(crate) incoming_connection: bool,
    pub(crate) config: ConnectionConfig,
    pub(crate) peer: Planes,
    pub(crate) agreed: Agreed,
    pub(crate) cookie: Option<Cookie>,

    // Sending.
    send_paths: Table<SendPath, PATHS>,
    slots: Slots<SLOTS>,
    wheel: Wheel<PATHS>,
    controller: AnyController<PATHS>,
    pacer: Pacer,
    entropies: EntropyChooser,
    orphans: List,
    /// Paths with lost slots that may be sent again.
    lost_paths: Bits,
    /// The first of them whose turn it is.
    lost_next: u8,
    /// Paths in state Active.
    usable: Bits,
    usable_count: u16,
    /// Paths kept out because there are more than packets in the window.
    reserve: Bits,
    /// Paths below this number may carry; follows the window.
    path_limit: u16,
    path_limit_key: (u8, u8),
    run_path: u8,
    run_left: u8,
    run_carried: u8,
    /// The request that the run carries, if it may go on with `run`; it has more than the packet sent.
    run_message: u16,
    /// Packets that count in the window.
    outstanding: u32,
    /// When data, INIT or ACCEPT last left.
    data_sent_at: Instant,
    /// The window, and not the application or the pacer, held the sender back last time.
    limited: bool,
    min_rtt: MinimumRtt,
    /// Over all paths.
    rtt: Rtt,
    /// The longest time for which the peer held an acknowledgment back lately, units of 16 ns.
    peer_delay: u16,
    wire_packet_bytes: u32,
    epoch: Epoch,
    last_epoch: Epoch,
    epoch_ends: Instant,
    epochs: u8,
    collapsed_this_epoch: bool,
    /// Until then losses are recent.
    losing_until: Instant,
    /// Share of packets lost, smoothed over about 64 round trips, in 1/64000.
    loss_share: u16,
    /// A mark was ever seen: delay need not stand in for marks.
    marks_seen: bool,

    // Messages.
    requests: OutTable<MESSAGES>,
    responses: OutTable<MESSAGES>,
    incoming: InTable<MESSAGES>,
    streams: Table<Stream, STREAMS>,
    active_first: u16,
    active_last: u16,
    active_count: u16,
    response_first: u16,
    response_last: u16,
    completed_first: u16,
    completed_last: u16,
    queued_bytes: u64,
    /// Withdrawals of regions that the open messages were checked against.
    regions_seen: u32,
    started: u16,
    reads: u16,
    streams_blocked: bool,
    streams_stalled: bool,
    waiting_messages: u16,
    token: u32,

    // Receiving.
    receive_paths: Table<ReceivePath, PATHS>,
    ack_now: Bits,
    ack_later: Bits,
    ack_next: u8,
    ack_last: u8,
    /// Until then gaps in the peer's sequences are recent.
    gaps_until: Instant,

    // Timers and control.
    timers: Timers,
    due: u16,
    probe_due: Bits,
    fence_due: Bits,
    fence_ack_due: Bits,
    probe_allowed_at: Instant,
    /// Probes in a row that asked whether the peer is there, and were not answered by anything.
    asked: u8,
    announce_number: u32,
    hint_number: u32,
    setup_attempts: u8,
    /// The INIT that is being sent was repeated at once for a RETRY (the acceptor: ACCEPT for a second INIT).
    retried: bool,
    close_sent: bool,
    accept_plane: u8,
    control_path: u8,
    close_mode: WireCloseMode,
    close_code: u16,
    heard_at: Instant,
    /// Nothing was heard since INIT (the acceptor) or ACCEPT (the initiator).
    half_open: bool,
    answered_at: Instant,
    planes_down: u8,
    planes_reported: u8,
    pub(crate) report_connected: bool,
    pub(crate) closed: Option<CloseReason>,
    report_streams: bool,
    /// There may be something for [`Self::poll_event`].
    events: bool,
    statistics: Counters,
}

impl<const PATHS: usize, const SLOTS: usize, const STREAMS: usize, const MESSAGES: usize>
    Connection<PATHS, SLOTS, STREAMS, MESSAGES>
{
    /// A connection that is not agreed on yet.
    pub(crate) fn new(
        now: Instant,
        local_id: u32,
        seed: u32,
        config: ConnectionConfig,
        endpoint: &EndpointConfig,
        peer: Planes,
    ) -> Self {
        const {
            assert!(PATHS >= 1 && PATHS <= Bits::CAPACITY, "1 to 128 paths");
            assert!(SLOTS >= 1 && SLOTS < 0xffff, "1 to 65534 slots");
            assert!(STREAMS >= 1 && STREAMS < 0xffff, "1 to 65534 streams");
            assert!(MESSAGES >= 1 && MESSAGES < 1 << 14, "1 to 16383 messages");
        }
        let network = Network {
            loop_rtt_ns: config.initial_rtt.as_nanos_u32(),
            link_mbps: endpoint.plane_mbps,
            packet_bytes: 4214,
        };
        Self {
            local_id,
            peer_id: 0,
            state: State::Connecting,
            incoming_connection: false,
            config,
            peer,
            agreed: Agreed {
                paths: 1,
                planes: 1,
                window: 1,
                streams: 1,
                open_messages: 1,
                open_responses: 1,
                payload_bytes: 256,
                omit_checksum: false,
            },
            cookie: None,
            send_paths: Table::filled(SendPath::UNUSED),
            slots: Slots::new(),
            wheel: Wheel::new(),
            controller: AnyController::new(config.controller, network),
            pacer: Pacer::new(),
            entropies: EntropyChooser::new(seed),
            orphans: List::EMPTY,
            lost_paths: Bits::EMPTY,
            lost_next: 0,
            usable: Bits::EMPTY,
            usable_count: 0,
            reserve: Bits::EMPTY,
            path_limit: 256,
            path_limit_key: (0, 0),
            run_path: 0,
            run_left: 0,
            run_carried: 0,
            run_message: outgoing::NONE,
            outstanding: 0,
            data_sent_at: Instant::ZERO,
            limited: false,
            min_rtt: MinimumRtt::new(),
            rtt: Rtt::UNKNOWN,
            peer_delay: 0,
            wire_packet_bytes: 4214,
            epoch: Epoch::default(),
            last_epoch: Epoch::default(),
            epoch_ends: now,
            epochs: 0,
            collapsed_this_epoch: false,
            losing_until: Instant::ZERO,
            loss_share: 0,
            marks_seen: false,
            requests: OutTable::new(),
            responses: OutTable::new(),
            incoming: InTable::new(),
            streams: Table::filled(Stream::IDLE),
            active_first: outgoing::NONE,
            active_last: outgoing::NONE,
            active_count: 0,
            response_first: outgoing::NONE,
            response_last: outgoing::NONE,
            completed_first: outgoing::NONE,
            completed_last: outgoing::NONE,
            queued_bytes: 0,
            regions_seen: 0,
            started: 0,
            reads: 0,
            streams_blocked: false,
            streams_stalled: false,
            waiting_messages: 0,
            token: seed,
            receive_paths: Table::filled(ReceivePath::new(0, 0)),
            ack_now: Bits::EMPTY,
            ack_later: Bits::EMPTY,
            ack_next: 0,
            ack_last: 0,
            gaps_until: Instant::ZERO,
            timers: Timers::new(),
            due: 0,
            probe_due: Bits::EMPTY,
            fence_due: Bits::EMPTY,
            fence_ack_due: Bits::EMPTY,
            probe_allowed_at: now,
            asked: 0,
            announce_number: 0,
            hint_number: 0,
            setup_attempts: 0,
            retried: false,
            close_sent: false,
            accept_plane: 0,
            control_path: 0,
            close_mode: WireCloseMode::Drain,
            close_code: 0,
            heard_at: now,
            half_open: false,
            answered_at: now,
            planes_down: 0,
            planes_reported: 0,
            report_connected: false,
            closed: None,
            report_streams: false,
            events: false,
            statistics: Counters::default(),
        }
    }

    pub(crate) const fn handle(&self) -> ConnectionHandle {
        ConnectionHandle(self.local_id)
    }

    /// Whether messages may be sent.
    #[inline]
    pub(crate) const fn is_open(&self) -> bool {
        matches!(
            self.state,
            State::Established | State::Closing | State::PeerClosing
        )
    }

    /// A message by the number that slots carry.
    #[inline]
    fn message(&self, number: u16) -> &OutMessage {
        if number & RESPONSE_BIT == 0 {
            self.requests.at(number)
        } else {
            self.responses.at(number & !RESPONSE_BIT)
        }
    }

    /// A message by the number that slots carry, to be changed.
    #[inline]
    fn message_mut(&mut self, number: u16) -> &mut OutMessage {
        if number & RESPONSE_BIT == 0 {
            self.requests.at_mut(number)
        } else {
            self.responses.at_mut(number & !RESPONSE_BIT)
        }
    }

    /// The least round-trip time, or what to assume before one was measured.
    #[inline]
    fn min_rtt_ns(&self) -> u32 {
        self.min_rtt.ns_or(self.config.initial_rtt.as_nanos_u32())
    }

    /// The measured least round-trip time, nanoseconds.
    pub(crate) fn measured_rtt(&self) -> Option<u32> {
        match self.min_rtt.ns_or(0) {
            0 => None,
            ns => Some(ns),
        }
    }

    /// What datagrams end with.
    // spec: MR-WIRE-011
    pub(crate) const fn trailer(&self) -> Trailer {
        if self.agreed.omit_checksum {
            Trailer::None
        } else {
            Trailer::Crc32c
        }
    }

    /// The path numbers in use.
    fn paths(&self) -> core::ops::Range<u8> {
        0..self.agreed.paths
    }

    /// Counters as of now.
    pub(crate) fn statistics(&self) -> ConnectionStatistics {
        let mut all = self.statistics.statistics();
        for path in self.paths() {
            let send = self.send_paths.at(u16::from(path));
            all.retransmissions += u64::from(send.retransmitted);
            all.bytes_sent += send.bytes;
            all.losses += u64::from(send.losses);
            all.ce_marks += u64::from(send.marks);
            all.spurious_retransmissions +=
                u64::from(send.old_duplicates) + u64::from(send.duplicates);
        }
        all.hint_mbps = self.controller.pacing_mbps().unwrap_or(0);
        all.window = self.controller.window();
        all.outstanding = self.outstanding;
        all.min_rtt_ns = self.min_rtt.ns_or(0);
        all.open_messages = u32::from(self.requests.used());
        all.queued_bytes = self.queued_bytes;
        all
    }

    /// Counters of a path.
    pub(crate) fn path_statistics(&self, path: u8) -> Option<PathStatistics> {
        if path >= self.agreed.paths {
            return None;
        }
        let send = self.send_paths.get(u16::from(path))?;
        let receive = self.receive_paths.get(u16::from(path))?;
        Some(PathStatistics {
            state: send.state,
            plane: send.plane,
            entropy: send.entropy,
            generation: send.generation,
            packets_sent: send.packets,
            retransmissions: send.retransmitted,
            losses: send.losses,
            spurious_retransmissions: send.old_duplicates.wrapping_add(send.duplicates),
            ce_marks: send.marks,
            bytes_sent: send.bytes,
            inflight: send.inflight.len(),
            weight: self.controller.weight(path),
            srtt_ns: send.rtt.smoothed_or(0),
            packets_received: receive.received(),
            duplicates_received: receive.duplicates(),
            ce_received: receive.ce_count(),
        })
    }

    /// Sequence numbers of a path.
    pub(crate) fn path_window(&self, path: u8) -> Option<PathWindow> {
        if path >= self.agreed.paths {
            return None;
        }
        let receive = self.receive_paths.get(u16::from(path))?;
        Some(PathWindow {
            next: self.send_paths.get(u16::from(path))?.next_psn,
            cumulative: receive.cumulative(),
            vector: receive.vector(),
        })
    }

    /// Whether a path's packets count in the window, and control may be sent over it.
    const fn counts(state: PathState) -> bool {
        matches!(state, PathState::Active | PathState::Draining)
    }
}
