//! A peer that does exactly what a test says, against one real endpoint: every datagram by hand.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::net::SocketAddr;

use metaroce_core::config::{ConnectionConfig, EndpointConfig, MAX_PLANES};
use metaroce_core::endpoint::ConnectionEntry;
use metaroce_core::wire::*;
use metaroce_core::work::{Completion, Event};
use metaroce_core::*;

use crate::support::{Bytes, Host, address};

pub const BASE: u64 = 0x1_0000;
pub const REGION: usize = 1 << 17;
/// The puppet's connection id.
pub const MINE: u32 = 0x00c0_ffee;

/// What the endpoint sent.
#[derive(Clone, Debug)]
pub struct Sent {
    pub at: u64,
    pub transmit: Transmit,
    /// With the trailer.
    pub bytes: Vec<u8>,
}

impl Sent {
    pub fn packet(&self) -> Packet<'_> {
        let trailer = if self.transmit.trailer { 4 } else { 0 };
        decode(&self.bytes[..self.bytes.len() - trailer]).unwrap()
    }
    pub fn header(&self) -> Header {
        Header::decode(&self.bytes).unwrap()
    }
    pub fn kind(&self) -> Kind {
        self.header().kind
    }
    /// The fields and the payload of a DATA packet.
    pub fn data(&self) -> (Header, Data, Vec<u8>) {
        match self.packet() {
            Packet::Data {
                header,
                data,
                payload,
            } => (header, data, payload.to_vec()),
            other => panic!("{other:?} is not DATA"),
        }
    }
    pub fn is(&self, kind: Kind) -> bool {
        self.kind() == kind
    }
}

/// The only kinds of one sort, in order.
pub fn only(sent: &[Sent], kind: Kind) -> Vec<Sent> {
    sent.iter().filter(|sent| sent.is(kind)).cloned().collect()
}

pub struct Puppet {
    pub host: Host,
    pub memory: Bytes,
    pub region: Region,
    pub now: u64,
    pub events: Vec<Event>,
    pub handle: Option<ConnectionHandle>,
    /// The endpoint's connection id.
    pub theirs: u32,
    pub parameters: Parameters,
    pub trailer: Trailer,
    pub plane: u8,
    pub source: SocketAddr,
    /// The next TSN of each path of the puppet.
    pub tsn: [u32; 16],
}

pub fn parameters(paths: u8, planes: u8) -> Parameters {
    let list: Vec<_> = (0..planes)
        .map(|plane| PlaneAddress::new(address(1, plane), 1024))
        .collect();
    Parameters {
        paths,
        window: 256,
        streams: 4,
        open_messages: 16,
        open_responses: 16,
        capabilities: Capabilities::NONE,
        ingress_mbps: 100_000,
        service: 7,
        planes: Planes::new(&list).unwrap(),
    }
}

impl Puppet {
    /// Nothing has been said yet.
    pub fn new(change: impl Fn(&mut EndpointConfig, &mut ConnectionConfig)) -> Self {
        let mut config = EndpointConfig {
            payload_bytes: 1024,
            entropies: 64,
            ..EndpointConfig::default()
        };
        for plane in 0..MAX_PLANES as u8 {
            config.addresses[usize::from(plane)] = address(0, plane);
        }
        let mut default = ConnectionConfig {
            keep_alive: Duration::ZERO,
            ..ConnectionConfig::default()
        };
        change(&mut config, &mut default);
        let entries = (0..4).map(|_| ConnectionEntry::new()).collect();
        let mut host = Host::new(config, default, [3; 32], entries).unwrap();
        let region = host.register(BASE, REGION as u64, Access::ALL).unwrap();
        Self {
            host,
            memory: Bytes(vec![(0..REGION).map(|i| (i * 7 + i / 255) as u8).collect()]),
            region,
            now: 1_000_000,
            events: vec![],
            handle: None,
            theirs: 0,
            parameters: parameters(4, 1),
            trailer: Trailer::Crc32c,
            plane: 0,
            source: address(1, 0),
            tsn: [0; 16],
        }
    }

    /// Nobody has asked for anything yet.
    pub fn listening() -> Self {
        Self::new(|_, _| ())
    }

    /// Established; the puppet asked for it.
    pub fn asking(change: impl Fn(&mut EndpointConfig, &mut ConnectionConfig)) -> Self {
        let mut puppet = Self::new(change);
        puppet.ask();
        puppet
    }

    /// An INIT with the cookie that the RETRY to it without one brought.
    pub fn with_cookie(&mut self, init: Init) -> Init {
        self.send(&Packet::Init(init)).unwrap();
        let sent = self.take();
        let Packet::Retry(retry) = sent[0].packet() else {
            panic!("{sent:?}")
        };
        Init {
            cookie: Some(retry.cookie),
            ..init
        }
    }

    /// INIT, RETRY, INIT, ACCEPT, PROBE.
    pub fn ask(&mut self) {
        let init = self.with_cookie(self.init(None));
        self.send(&Packet::Init(init)).unwrap();
        let sent = self.take();
        let Packet::Accept(accept) = sent[0].packet() else {
            panic!("{sent:?}")
        };
        self.theirs = accept.source;
        self.probe(0, 0).unwrap();
        self.take();
        self.connected();
    }

    /// Established; the endpoint asked for it.
    pub fn asked(change: impl Fn(&mut ConnectionConfig)) -> Self {
        Self::asked_with(|_, _| (), change, |_| ())
    }

    pub fn asked_with(
        endpoint: impl Fn(&mut EndpointConfig, &mut ConnectionConfig),
        change: impl Fn(&mut ConnectionConfig),
        offer: impl Fn(&mut Parameters),
    ) -> Self {
        let mut puppet = Self::new(endpoint);
        offer(&mut puppet.parameters);
        puppet.connect(change);
        let sent = puppet.take();
        let Packet::Init(init) = sent[0].packet() else {
            panic!("{sent:?}")
        };
        puppet.theirs = init.source;
        puppet.accept(0).unwrap();
        // The PROBE that says that ACCEPT arrived: the first round trip is 10 us.
        let sent = puppet.take();
        puppet.now += 10_000;
        let probe = sent[0].header();
        puppet.ack(block(probe.path, 0, 0, &[])).unwrap();
        puppet.take();
        puppet.connected();
        puppet
    }

    /// The endpoint asks for a connection.
    pub fn connect(&mut self, change: impl Fn(&mut ConnectionConfig)) {
        let mut config = ConnectionConfig {
            paths: 4,
            keep_alive: Duration::ZERO,
            announce: false,
            ..ConnectionConfig::default()
        };
        change(&mut config);
        let peers: Vec<_> = (0..self.parameters.planes.count())
            .map(|plane| address(1, plane as u8))
            .collect();
        self.handle = Some(self.host.connect(self.at(), &peers, config).unwrap());
    }

    pub fn accept(&mut self, hint_mbps: u32) -> Result<(), DropReason> {
        self.send(&Packet::Accept(Accept {
            connection: self.theirs,
            source: MINE,
            hint_mbps,
            version: VERSION,
            parameters: self.parameters,
        }))
    }

    /// Takes the handle from the event that says so.
    pub fn connected(&mut self) {
        self.handle = self.events.iter().rev().find_map(|event| match event {
            Event::Connected { connection, .. } => Some(*connection),
            _ => None,
        });
        assert!(self.handle.is_some(), "{:?}", self.events);
    }

    pub fn init(&self, cookie: Option<Cookie>) -> Init {
        Init {
            attempt: 0,
            source: MINE,
            lowest_version: VERSION,
            highest_version: VERSION,
            cookie,
            parameters: self.parameters,
        }
    }

    pub fn at(&self) -> Instant {
        Instant::from_nanos(self.now)
    }

    pub fn handle(&self) -> ConnectionHandle {
        self.handle.unwrap()
    }

    /// Gives the endpoint a datagram.
    pub fn send(&mut self, packet: &Packet<'_>) -> Result<(), DropReason> {
        let mut buffer = [0; 10_000];
        let length = packet.encode(&mut buffer).unwrap();
        let setup = Header::decode(&buffer).unwrap().kind.is_setup();
        let trailer = if setup { Trailer::Crc32c } else { self.trailer };
        let length = seal(&mut buffer, length, trailer).unwrap();
        self.send_bytes(&buffer[..length], Ecn::Ect0)
    }

    pub fn send_bytes(&mut self, bytes: &[u8], ecn: Ecn) -> Result<(), DropReason> {
        let meta = ReceiveMeta {
            source: self.source,
            plane: self.plane,
            ecn,
            checksum_verified: false,
        };
        let now = self.at();
        self.host
            .handle_datagram(now, &meta, bytes, &mut self.memory)
    }

    pub fn header(&self, kind: Kind) -> Header {
        Header::new(kind, self.theirs)
    }

    pub fn ack(&mut self, block: AckBlock) -> Result<(), DropReason> {
        self.acks(AckKind::Ack, &[block])
    }

    pub fn acks(&mut self, kind: AckKind, blocks: &[AckBlock]) -> Result<(), DropReason> {
        let mut bytes = vec![0; ACK_SIZE];
        let first = bytes.first_chunk_mut().unwrap();
        let length = encode_ack(kind, Flags::NONE, self.theirs, &blocks[0], first);
        bytes.truncate(length);
        for block in &blocks[1..] {
            let mut more = [0; ACK_BLOCK_SIZE];
            let length = append_ack_block(block, &mut more);
            bytes.extend(&more[..length]);
        }
        let length = bytes.len();
        bytes.extend([0; 4]);
        let length = seal(&mut bytes, length, self.trailer).unwrap();
        self.send_bytes(&bytes[..length], Ecn::NotEct)
    }

    /// A PROBE on a path of the puppet, with the next TSN.
    pub fn probe(&mut self, path: u8, attempt: u32) -> Result<(), DropReason> {
        self.probe_of(path, 0, attempt)
    }

    pub fn probe_of(&mut self, path: u8, generation: u8, attempt: u32) -> Result<(), DropReason> {
        let tsn = self.next_tsn(path);
        self.send(&Packet::Probe(Probe {
            path,
            generation,
            connection: self.theirs,
            attempt,
            tsn,
        }))
    }

    fn next_tsn(&mut self, path: u8) -> u32 {
        let tsn = &mut self.tsn[usize::from(path % 16)];
        *tsn += 1;
        *tsn - 1
    }

    /// A DATA packet on a path of the puppet, with the next TSN.
    pub fn data(
        &mut self,
        path: u8,
        psn: u32,
        data: Data,
        payload: &[u8],
    ) -> Result<(), DropReason> {
        let tsn = self.next_tsn(path);
        let header = Header {
            path,
            psn,
            tsn,
            ..self.header(Kind::Data)
        };
        self.data_as(header, data, payload)
    }

    pub fn data_as(
        &mut self,
        header: Header,
        data: Data,
        payload: &[u8],
    ) -> Result<(), DropReason> {
        self.send(&Packet::Data {
            header,
            data,
            payload,
        })
    }

    /// A WRITE of the whole of `payload` as one message.
    pub fn write(&self, stream: u16, msn: u32, offset: u64, length: u32) -> Data {
        Data {
            opcode: Opcode::Write,
            demand: Demand::NONE,
            stream,
            msn,
            length,
            offset: 0,
            address: BASE + offset,
            key: self.region.key,
            immediate: 0,
        }
    }

    pub fn send_message(stream: u16, msn: u32, rsn: u32, attempt: u8, length: u32) -> Data {
        Data {
            opcode: Opcode::Send,
            demand: Demand::NONE,
            stream,
            msn,
            length,
            offset: 0,
            address: SendAddress { rsn, attempt }.to_bits(),
            key: 0,
            immediate: 0,
        }
    }

    /// An ERROR about one of the endpoint's messages.
    pub fn error(&mut self, path: u8, psn: u32, report: ErrorReport) -> Result<(), DropReason> {
        let data = Data {
            opcode: Opcode::Error,
            demand: Demand::NONE,
            stream: 0xffff,
            msn: 0,
            length: ERROR_SIZE as u32,
            offset: 0,
            address: 0,
            key: 0,
            immediate: 0,
        };
        self.data(path, psn, data, &report.encode())
    }

    /// Everything that the endpoint sends now.
    pub fn take(&mut self) -> Vec<Sent> {
        let mut all = vec![];
        let mut buffer = vec![0; 10_000];
        let now = self.at();
        while let Some(transmit) = self.host.poll_datagram(now, &self.memory, &mut buffer) {
            all.push(Sent {
                at: self.now,
                transmit,
                bytes: buffer[..transmit.length].to_vec(),
            });
            assert!(all.len() < 100_000, "it never stops");
        }
        while let Some(event) = self.host.poll_event() {
            self.events.push(event);
        }
        all
    }

    /// Lets time pass, timers fire, and gives all that is sent meanwhile.
    pub fn run(&mut self, ns: u64) -> Vec<Sent> {
        let end = self.now + ns;
        let mut all = self.take();
        while let Some(at) = self.host.poll_timeout().filter(|at| at.as_nanos() <= end) {
            self.now = self.now.max(at.as_nanos());
            let now = self.at();
            self.host.handle_timeout(now);
            all.extend(self.take());
        }
        self.now = end;
        all.extend(self.take());
        all
    }

    pub fn post(
        &mut self,
        stream: u16,
        id: u64,
        operation: Operation<'_>,
    ) -> Result<(), work::PostError> {
        self.post_with(stream, id, operation, WorkFlags::default())
    }

    pub fn post_with(
        &mut self,
        stream: u16,
        id: u64,
        operation: Operation<'_>,
        flags: WorkFlags,
    ) -> Result<(), work::PostError> {
        let (now, handle) = (self.at(), self.handle());
        self.host.post(
            now,
            handle,
            stream,
            &WorkRequest {
                id,
                operation,
                flags,
            },
        )
    }

    /// The endpoint writes `length` bytes of its region to the puppet.
    pub fn post_write(&mut self, stream: u16, id: u64, length: u32) {
        let local = Source::Region(self.local(0, length));
        let remote = RemoteAddress {
            address: 0x4000,
            key: 0x1234_5678,
        };
        let operation = Operation::Write {
            local,
            remote,
            immediate: None,
        };
        self.post(stream, id, operation).unwrap();
    }

    pub fn post_send(&mut self, stream: u16, id: u64, length: u32) {
        let local = Source::Region(self.local(0, length));
        let operation = Operation::Send {
            local,
            immediate: None,
        };
        self.post(stream, id, operation).unwrap();
    }

    pub fn post_receive(&mut self, stream: u16, id: u64, offset: u64, length: u32) {
        let local = self.local(offset, length);
        let queue = ReceiveQueue::Stream(self.handle(), stream);
        self.host
            .post_receive(queue, &ReceiveRequest { id, local })
            .unwrap();
    }

    pub fn local(&self, offset: u64, length: u32) -> LocalSlice {
        LocalSlice {
            region: self.region.index,
            offset,
            length,
        }
    }

    pub fn bytes(&self, offset: usize, length: usize) -> &[u8] {
        &self.memory.0[0][offset..offset + length]
    }

    pub fn completions(&mut self) -> Vec<Completion> {
        while let Some(event) = self.host.poll_event() {
            self.events.push(event);
        }
        self.events
            .iter()
            .filter_map(|event| match event {
                Event::Completion(completion) => Some(*completion),
                _ => None,
            })
            .collect()
    }

    pub fn statistics(&self) -> stats::ConnectionStatistics {
        self.host.connection_statistics(self.handle()).unwrap()
    }

    pub fn path(&self, path: u8) -> stats::PathStatistics {
        self.host.path_statistics(self.handle(), path).unwrap()
    }

    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.host.endpoint_statistics().dropped(reason)
    }

    /// Acknowledges DATA packets that the endpoint sent: all of each path that are in the list.
    pub fn ack_all(&mut self, sent: &[Sent]) {
        for path in 0..16 {
            let newest = sent
                .iter()
                .filter(|sent| sent.is(Kind::Data) && sent.header().path == path)
                .max_by_key(|sent| sent.header().tsn);
            if let Some(newest) = newest {
                let header = newest.header();
                let next = sent
                    .iter()
                    .filter(|sent| sent.is(Kind::Data) && sent.header().path == path)
                    .map(|sent| sent.header().psn + 1)
                    .max()
                    .unwrap();
                let block = AckBlock {
                    generation: header.generation,
                    newest_psn: header.psn,
                    ..block(path, next, header.tsn, &[])
                };
                self.ack(block).unwrap();
            }
        }
    }

    /// The one ACK block about a path in what was sent last.
    pub fn last_block(sent: &[Sent], path: u8) -> Option<AckBlock> {
        sent.iter().rev().find_map(|sent| match sent.packet() {
            Packet::Ack { mut blocks, .. } => blocks.find(|block| block.path == path),
            _ => None,
        })
    }
}

/// A block of generation 0 without marks, delay or hint: cumulative PSN, newest TSN, PSNs behind it that were received.
pub fn block(path: u8, cumulative: u32, newest_tsn: u32, beyond: &[u32]) -> AckBlock {
    let mut sack = [0; 4];
    for psn in beyond {
        let bit = psn - cumulative;
        sack[(bit / 64) as usize] |= 1 << (bit % 64);
    }
    AckBlock {
        path,
        generation: 0,
        cumulative,
        newest_tsn,
        newest_psn: PSN_OF_PROBE,
        delay: 0,
        ce_count: 0,
        received: cumulative + beyond.len() as u32,
        hint_mbps: 0,
        sack,
    }
}
