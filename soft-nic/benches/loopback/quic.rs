//! The same bytes over quinn, on one stream, encrypted as QUIC always is.

use crate::{Cores, Rate};
use quinn::{ClientConfig, Endpoint, MtuDiscoveryConfig, ServerConfig, TransportConfig, VarInt};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

fn transport(datagram: Option<u16>) -> (Arc<TransportConfig>, u16) {
    let mut transport = TransportConfig::default();
    transport
        .stream_receive_window(VarInt::from_u32(8 << 20))
        .receive_window(VarInt::from_u32(16 << 20))
        .send_window(16 << 20);
    if let Some(datagram) = datagram {
        let mut discovery = MtuDiscoveryConfig::default();
        discovery.upper_bound(datagram);
        transport
            .initial_mtu(datagram)
            .min_mtu(datagram)
            .mtu_discovery_config(Some(discovery));
    }
    (Arc::new(transport), datagram.unwrap_or(1_472))
}

fn endpoint(server: Option<ServerConfig>, datagram: u16) -> Endpoint {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a loopback socket");
    let _ = rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, 16 << 20);
    let _ = rustix::net::sockopt::set_socket_send_buffer_size_force(&socket, 8 << 20);
    let mut config = quinn::EndpointConfig::default();
    config
        .max_udp_payload_size(datagram.max(1_472))
        .expect("payload size");
    Endpoint::new(config, server, socket, Arc::new(quinn::TokioRuntime)).expect("endpoint")
}

/// Sends `total` bytes in writes of `message` bytes. `datagram`: the UDP payload size, or quinn's own choice.
pub fn throughput(message: usize, total: u64, datagram: Option<u16>, cores: Cores) -> Rate {
    let certified =
        rcgen::generate_simple_self_signed(vec!["localhost".into()]).expect("a certificate");
    let certificate = certified.cert.der().clone();
    let key = rustls::pki_types::PrivateKeyDer::Pkcs8(certified.signing_key.serialize_der().into());
    let (address_in, address_out) = std::sync::mpsc::channel::<SocketAddr>();
    let server_certificate = certificate.clone();
    let server = std::thread::spawn(move || {
        cores.pin_first();
        runtime().block_on(async move {
            let (transport, size) = transport(datagram);
            let mut config = ServerConfig::with_single_cert(vec![server_certificate], key)
                .expect("server config");
            config.transport_config(transport);
            let endpoint = endpoint(Some(config), size);
            address_in
                .send(endpoint.local_addr().expect("address"))
                .expect("channel");
            let connection = endpoint
                .accept()
                .await
                .expect("incoming")
                .await
                .expect("connection");
            let mut stream = connection.accept_uni().await.expect("stream");
            let mut received = 0u64;
            let mut start = None;
            while let Some(chunk) = stream.read_chunk(usize::MAX, true).await.expect("read") {
                start.get_or_insert_with(Instant::now);
                received += chunk.bytes.len() as u64;
            }
            let rate = Rate {
                bytes: received,
                time: start.map(|start| start.elapsed()).unwrap_or_default(),
            };
            connection.close(VarInt::from_u32(0), b"done");
            endpoint.wait_idle().await;
            rate
        })
    });
    cores.pin_second();
    runtime().block_on(async move {
        let (transport, size) = transport(datagram);
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificate).expect("root");
        let mut config =
            ClientConfig::with_root_certificates(Arc::new(roots)).expect("client config");
        config.transport_config(transport);
        let endpoint = endpoint(None, size);
        let address = address_out.recv().expect("channel");
        let connection = endpoint
            .connect_with(config, address, "localhost")
            .expect("connect")
            .await
            .expect("connection");
        let mut stream = connection.open_uni().await.expect("stream");
        let bytes = vec![0x5a; message];
        let mut left = total;
        while left > 0 {
            let length = left.min(message as u64) as usize;
            stream.write_all(&bytes[..length]).await.expect("write");
            left -= length as u64;
        }
        stream.finish().expect("finish");
        connection.closed().await;
    });
    server.join().expect("server thread")
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("runtime")
}
