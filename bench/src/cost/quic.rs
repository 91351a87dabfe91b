//! quinn-proto's QUIC: two endpoints with one connection and one stream. It always encrypts.

use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use bytes::{Bytes, BytesMut};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig,
    MtuDiscoveryConfig, ReadError, ServerConfig, StreamId, Transmit, TransportConfig, WriteError,
};
use rustls::RootCertStore;
use rustls::pki_types::PrivateKeyDer;

use crate::{Case, Pair};

/// Bigger than any header, smaller than any packet with a full payload.
const LEAST_DATA_PACKET: usize = 400;
/// As in quinn-proto's own tests: how many datagrams one call may make.
const MAX_DATAGRAMS: usize = 10;

pub fn cases() -> Vec<Case> {
    vec![
        Case {
            name: "quinn-proto-1452",
            remarks: "encrypts (AES or ChaCha, TLS 1.3); MTU as found by its discovery",
            connect: || connect(None),
        },
        Case {
            name: "quinn-proto-4096",
            remarks: "encrypts (AES or ChaCha, TLS 1.3); 4150-byte datagrams",
            connect: || connect(Some(4150)),
        },
    ]
}

fn connect(mtu: Option<u16>) -> Result<Box<dyn Pair>> {
    let mut transport = TransportConfig::default();
    if let Some(mtu) = mtu {
        transport
            .initial_mtu(mtu)
            .min_mtu(mtu)
            .mtu_discovery_config(None);
    } else {
        transport.mtu_discovery_config(Some(MtuDiscoveryConfig::default()));
    }
    let transport = Arc::new(transport);
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let certificate = certified.cert.der().clone();
    let key = PrivateKeyDer::Pkcs8(certified.signing_key.serialize_der().into());
    let mut server_config = ServerConfig::with_single_cert(vec![certificate.clone()], key)?;
    server_config.transport = transport.clone();
    let mut roots = RootCertStore::empty();
    roots.add(certificate)?;
    let mut client_config = ClientConfig::with_root_certificates(Arc::new(roots))?;
    client_config.transport_config(transport);

    let mut settings = EndpointConfig::default();
    if let Some(mtu) = mtu {
        settings.max_udp_payload_size(mtu)?;
    }
    let settings = Arc::new(settings);
    let address = |port| SocketAddr::from((Ipv6Addr::LOCALHOST, port));
    let mut pair = QuicPair {
        now: Instant::now(),
        client: Side::new(
            Endpoint::new(settings.clone(), None, true, None),
            address(1),
            address(2),
        ),
        server: Side::new(
            Endpoint::new(settings, Some(Arc::new(server_config)), true, None),
            address(2),
            address(1),
        ),
        stream: None,
    };
    let connected =
        pair.client
            .endpoint
            .connect(pair.now, client_config, address(2), "localhost")?;
    pair.client.connection = Some(connected);
    for _ in 0..1000 {
        pair.step()?;
        let up = |side: &Side| {
            side.connection
                .as_ref()
                .is_some_and(|(_, c)| !c.is_handshaking())
        };
        if up(&pair.client) && up(&pair.server) {
            let stream = pair.client.connection()?.streams().open(Dir::Uni);
            pair.stream = Some(stream.context("no stream to open")?);
            return Ok(Box::new(pair));
        }
    }
    bail!("the handshake did not end")
}

struct QuicPair {
    now: Instant,
    client: Side,
    server: Side,
    stream: Option<StreamId>,
}

impl QuicPair {
    /// Time goes on, and everything that can be sent is sent and handled.
    fn step(&mut self) -> Result<()> {
        self.now += Duration::from_micros(10);
        self.client.drive(self.now, &mut self.server.inbound)?;
        self.server.drive(self.now, &mut self.client.inbound)
    }
}

impl Pair for QuicPair {
    fn transfer(&mut self, bytes: u64) -> Result<u64> {
        static PAYLOAD: [u8; 64 << 10] = [7; 64 << 10];
        let stream = self.stream.context("not connected")?;
        let before = self.client.data_sent;
        let (mut sent, mut received, mut idle) = (0, 0, 0);
        while received < bytes {
            while sent < bytes {
                let length = (bytes - sent).min(PAYLOAD.len() as u64) as usize;
                // Handed over by reference: nothing is copied on the way in.
                let mut chunk = [Bytes::from_static(&PAYLOAD[..length])];
                match self
                    .client
                    .connection()?
                    .send_stream(stream)
                    .write_chunks(&mut chunk)
                {
                    Ok(written) => sent += written.bytes as u64,
                    Err(WriteError::Blocked) => break,
                    Err(error) => return Err(error.into()),
                }
            }
            self.step()?;
            let moved = self.server.read_all(stream)?;
            received += moved;
            idle = if moved == 0 { idle + 1 } else { 0 };
            if idle > 100_000 {
                bail!("stalled after {received} bytes");
            }
        }
        Ok(self.client.data_sent - before)
    }
}

/// An endpoint, its one connection, and the datagrams that wait for it.
struct Side {
    endpoint: Endpoint,
    address: SocketAddr,
    peer: SocketAddr,
    connection: Option<(ConnectionHandle, Connection)>,
    inbound: Vec<BytesMut>,
    scratch: Vec<u8>,
    data_sent: u64,
}

impl Side {
    fn new(endpoint: Endpoint, address: SocketAddr, peer: SocketAddr) -> Self {
        let (inbound, scratch) = (Vec::new(), Vec::new());
        Self {
            endpoint,
            address,
            peer,
            connection: None,
            inbound,
            scratch,
            data_sent: 0,
        }
    }

    fn connection(&mut self) -> Result<&mut Connection> {
        self.connection
            .as_mut()
            .map(|(_, connection)| connection)
            .context("no connection")
    }

    fn drive(&mut self, now: Instant, outbound: &mut Vec<BytesMut>) -> Result<()> {
        for datagram in std::mem::take(&mut self.inbound) {
            self.scratch.clear();
            let local = Some(self.address.ip());
            match self
                .endpoint
                .handle(now, self.peer, local, None, datagram, &mut self.scratch)
            {
                Some(DatagramEvent::ConnectionEvent(_, event)) => {
                    self.connection()?.handle_event(event)
                }
                Some(DatagramEvent::NewConnection(incoming)) => {
                    let accepted = self.endpoint.accept(incoming, now, &mut self.scratch, None);
                    self.connection =
                        Some(accepted.map_err(|error| anyhow!("accept: {}", error.cause))?);
                }
                Some(DatagramEvent::Response(transmit)) => self.send(&transmit, outbound),
                None => {}
            }
        }
        let Some((handle, mut connection)) = self.connection.take() else {
            return Ok(());
        };
        if connection.poll_timeout().is_some_and(|due| due <= now) {
            connection.handle_timeout(now);
        }
        loop {
            while connection.poll().is_some() {}
            let Some(event) = connection.poll_endpoint_events() else {
                break;
            };
            if let Some(event) = self.endpoint.handle_event(handle, event) {
                connection.handle_event(event);
            }
        }
        self.scratch.clear();
        while let Some(transmit) = connection.poll_transmit(now, MAX_DATAGRAMS, &mut self.scratch) {
            self.send(&transmit, outbound);
            self.scratch.clear();
        }
        self.connection = Some((handle, connection));
        Ok(())
    }

    fn send(&mut self, transmit: &Transmit, outbound: &mut Vec<BytesMut>) {
        let all = &self.scratch[..transmit.size];
        for datagram in all.chunks(transmit.segment_size.unwrap_or(transmit.size)) {
            self.data_sent += u64::from(datagram.len() >= LEAST_DATA_PACKET);
            outbound.push(datagram.into());
        }
    }

    fn read_all(&mut self, stream: StreamId) -> Result<u64> {
        let mut total = 0;
        let mut receive = self.connection()?.recv_stream(stream);
        // Before its first packet the stream is not known.
        let Ok(mut chunks) = receive.read(true) else {
            return Ok(0);
        };
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => total += chunk.bytes.len() as u64,
                Ok(None) | Err(ReadError::Blocked) => break,
                Err(error) => return Err(error.into()),
            }
        }
        // Credit for more is sent by the next poll.
        let _ = chunks.finalize();
        Ok(total)
    }
}
