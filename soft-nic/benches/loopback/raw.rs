//! What the kernel can do: plain UDP with segmentation offload both ways, and a plain ping-pong.

use crate::{Cores, Latency, Rate};
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use std::io::{ErrorKind, IoSliceMut};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

const BUFFERS: usize = 8;

fn socket() -> (UdpSocket, UdpSocketState) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a loopback socket");
    let state = UdpSocketState::new((&socket).into()).expect("socket options");
    let _ = rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, 16 << 20);
    let _ = rustix::net::sockopt::set_socket_send_buffer_size_force(&socket, 8 << 20);
    (socket, state)
}

/// Sends datagrams of `size` bytes, as many per call as fit, until `total` bytes have been received.
pub fn throughput(size: usize, total: u64, cores: Cores) -> Rate {
    let (sender, sender_state) = socket();
    let (receiver, receiver_state) = socket();
    let destination = receiver.local_addr().expect("address");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let done = &done;
        scope.spawn(move || {
            cores.pin_first();
            let segments = (65_487 / size).min(sender_state.max_gso_segments()).max(1);
            let contents = vec![0x5a; segments * size];
            let transmit = Transmit {
                destination,
                ecn: Some(quinn_udp::EcnCodepoint::Ect0),
                contents: &contents,
                segment_size: Some(size),
                src_ip: None,
            };
            while !done.load(Ordering::Relaxed) {
                match sender_state.try_send((&sender).into(), &transmit) {
                    Ok(()) => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => std::hint::spin_loop(),
                    Err(error) => panic!("raw send: {error}"),
                }
            }
        });
        cores.pin_second();
        let mut memory = vec![0; BUFFERS * 65_536];
        let mut received = 0u64;
        let mut start = None;
        while received < total {
            let mut metas = [RecvMeta::default(); BUFFERS];
            let mut chunks = memory.chunks_exact_mut(65_536).map(IoSliceMut::new);
            let mut buffers: [IoSliceMut; BUFFERS] =
                std::array::from_fn(|_| chunks.next().expect("enough chunks"));
            match receiver_state.recv((&receiver).into(), &mut buffers, &mut metas) {
                Ok(count) => {
                    start.get_or_insert_with(Instant::now);
                    received += metas[..count]
                        .iter()
                        .map(|meta| meta.len as u64)
                        .sum::<u64>();
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => std::hint::spin_loop(),
                Err(error) => panic!("raw receive: {error}"),
            }
        }
        done.store(true, Ordering::Relaxed);
        Rate {
            bytes: received,
            time: start.map(|start| start.elapsed()).unwrap_or_default(),
        }
    })
}

/// Round trips of `size` bytes, one at a time. Both sides sleep in the kernel, or both spin.
pub fn ping_pong(size: usize, count: usize, spin: bool, cores: Cores) -> Latency {
    let bind = || {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a loopback socket");
        socket.set_nonblocking(spin).expect("socket option");
        socket
    };
    let (here, there) = (bind(), bind());
    here.connect(there.local_addr().expect("address"))
        .expect("connect");
    there
        .connect(here.local_addr().expect("address"))
        .expect("connect");
    let receive = |socket: &UdpSocket, bytes: &mut [u8]| loop {
        match socket.recv(bytes) {
            Ok(length) => return length,
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::hint::spin_loop(),
            Err(error) => panic!("raw receive: {error}"),
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(move || {
            cores.pin_first();
            let mut bytes = vec![0; size];
            for _ in 0..count {
                let length = receive(&there, &mut bytes);
                there.send(&bytes[..length]).expect("raw send");
            }
        });
        cores.pin_second();
        let mut bytes = vec![1; size];
        let mut latency = Latency::with_capacity(count);
        for _ in 0..count {
            let start = Instant::now();
            here.send(&bytes).expect("raw send");
            receive(&here, &mut bytes);
            latency.record(start.elapsed());
        }
        latency
    })
}
