//! What the page draws, as arrays of numbers: records of equal length, one behind the other.

use metaroce_sim::explore::{BIN, CELLS, Exploration};
use metaroce_sim::faults::FaultConfig;
use metaroce_sim::inspect;
use metaroce_sim::packet::{Class, Ecn, PacketId};
use metaroce_sim::port::{Node, Port, PortId};
use metaroce_sim::time::Time;

/// Numbers of a link's record.
pub const LINK: usize = 8;
/// Numbers of a packet's record.
pub const PACKET: usize = 7;
/// Numbers of a port's record.
pub const PORT: usize = 8;
/// Numbers before the first path of a connection.
pub const CONNECTION: usize = 8;
/// Numbers of a path's record.
pub const PATH: usize = 18;
/// Numbers of a transfer's record.
pub const TRANSFER: usize = 5 + CELLS / 4;

/// Packets of a queue that are told one by one, at most.
const QUEUE: usize = 48;

/// Bits of a packet's flags: it carries data, was marked, was sent before, was trimmed.
pub mod flag {
    /// It carries data.
    pub const DATA: u8 = 1;
    /// Congestion was experienced.
    pub const MARKED: u8 = 2;
    /// It was sent before.
    pub const AGAIN: u8 = 4;
    /// Its payload was cut off.
    pub const TRIMMED: u8 = 8;
}

/// For each link: 1 if its lower end is a switch, number of the lower end, number of the switch above, port upwards, port downwards, tier,
/// plane, rate in Mbit/s. (The upper end of a pair of hosts is a host: then bit 1 of the first number is set.)
#[must_use]
pub fn links(run: &Exploration) -> Vec<u32> {
    let number = |node| match node {
        Node::Host(host) => (0, host),
        Node::Switch(switch) => (1, switch),
    };
    run.links()
        .iter()
        .flat_map(|link| {
            let ((kind, lower), (above, upper)) = (number(link.lower), number(link.upper));
            let mbps = run.network().ports[link.up as usize].config.mbps as u32;
            let kind = kind | (1 - above) << 1;
            let (tier, plane) = (link.tier as u32, link.plane.into());
            [kind, lower, upper, link.up, link.down, tier, plane, mbps]
        })
        .collect()
}

/// For each packet: its number, its port, where it is (0 to 1: how far along the wire; -1 and less: it waits, and is so far from the head of the
/// queue), its path, its flags, who sent it, whom it is for.
#[must_use]
pub fn packets(run: &Exploration) -> Vec<f32> {
    let network = run.network();
    let now = network.now();
    let mut all = Vec::with_capacity(network.packets.live() * PACKET);
    for (number, port) in (0..).zip(&network.ports) {
        for (arrival, id) in port.flying() {
            let place = along(port, now, arrival, network.packets.get(id).wire_bytes);
            packet(run, number, id, place, &mut all);
        }
        for (place, id) in port.waiting().take(QUEUE).enumerate() {
            packet(run, number, id, -1.0 - place as f32, &mut all);
        }
    }
    all
}

/// How far the middle of a packet is along a wire.
fn along(port: &Port, now: Time, arrival: Time, bytes: u32) -> f32 {
    let takes = Time::to_send(bytes.into(), port.config.mbps).ps() as f64;
    let delay = port.config.delay.ps().max(1) as f64;
    let left = (arrival.ps() as f64 - now.ps() as f64 - takes / 2.0) / delay;
    (1.0 - left).clamp(0.0, 1.0) as f32
}

fn packet(run: &Exploration, port: PortId, id: PacketId, place: f32, all: &mut Vec<f32>) {
    let packet = run.network().packets.get(id);
    let bit = |is: bool, bit: u8| if is { bit } else { 0 };
    let flags = bit(packet.is_data() && packet.class == Class::Data, flag::DATA)
        | bit(packet.ecn == Ecn::Ce, flag::MARKED)
        | bit(inspect::is_retransmission(&packet.bytes), flag::AGAIN)
        | bit(packet.trimmed, flag::TRIMMED);
    all.extend([
        id.0 as f32,
        port as f32,
        place,
        run.path(packet).into(),
        flags.into(),
        packet.source as f32,
        packet.destination as f32,
    ]);
}

/// For each port: packets that wait, bytes that wait and are on the line, the most it may hold, marks so far, packets lost so far, 1 if its
/// link is up, its rate in Mbit/s, packets of a million that its wire loses.
#[must_use]
pub fn ports(run: &Exploration) -> Vec<f32> {
    let now = run.network().now();
    let ports = run.network().ports.iter();
    ports
        .flat_map(|port| {
            let loss = port.faults.as_ref().map(|faults| faults.config());
            [
                port.queued() as f32,
                port.backlog_bytes(now) as f32,
                port.config.queue_bytes as f32,
                port.statistics.marked as f32,
                port.statistics.drops() as f32,
                u8::from(port.is_up()).into(),
                port.config.mbps as f32,
                loss.map_or(0.0, ppm),
            ]
        })
        .collect()
}

fn ppm(config: &FaultConfig) -> f32 {
    (config.loss.as_f64() * 1e6) as f32
}

/// Bytes placed, data packets, retransmissions, duplicates, packets dropped as they were out of order, timeouts, marks, packets lost in the
/// network, tasks over, tasks, hops.
#[must_use]
pub fn counters(run: &Exploration) -> Vec<f64> {
    let (counters, status) = (run.counters(), run.status());
    let ports = run.network().ports.iter();
    let lost: u64 = ports.map(|port| port.statistics.drops()).sum();
    [
        counters.placed_bytes,
        counters.data_packets,
        counters.retransmissions,
        counters.duplicates,
        counters.out_of_order_drops,
        counters.timeouts,
        counters.marked,
        lost,
        status.done.into(),
        status.tasks.into(),
        run.network().hops(),
    ]
    .map(|count| count as f64)
    .to_vec()
}

/// Window (packets, 16 fraction bits), packets in flight, hint in Mbit/s, rate in Mbit/s, least round-trip time in ns, bytes that wait (low
/// and high half), number of paths; then for each path its state, entropy, share of the window (packets, 16 fraction bits), packets in flight,
/// round-trip time in ns, losses, retransmissions, marks, the sequence number that is sent next, that up to which all has come, and the 256 bits
/// from there on. Empty: there is no such connection.
#[must_use]
pub fn connection(run: &Exploration, from: u32, to: u32) -> Vec<u32> {
    let Some(view) = run.connection(from, to) else {
        return Vec::new();
    };
    let mut all = Vec::with_capacity(CONNECTION + PATH * view.paths.len());
    all.extend([
        view.window,
        view.outstanding,
        view.hint_mbps,
        view.rate_mbps,
        view.min_rtt_ns,
        view.queued_bytes as u32,
        (view.queued_bytes >> 32) as u32,
        view.paths.len() as u32,
    ]);
    for path in &view.paths {
        all.extend([
            path.state.into(),
            path.entropy.into(),
            path.weight,
            path.inflight,
            path.srtt_ns,
            path.losses,
            path.retransmissions,
            path.marks,
            path.next,
            path.cumulative,
        ]);
        let halves = path
            .vector
            .iter()
            .flat_map(|&word| [word as u32, (word >> 32) as u32]);
        all.extend(halves);
    }
    all
}

/// For each message that was posted (of the newest ones, so many): its number, sender, receiver, bytes, bytes in their place, and how full each
/// of its parts is (0 to 255, four in a number, the first in its lowest bits).
#[must_use]
pub fn transfers(run: &Exploration, most: usize) -> Vec<u32> {
    let placements = run.placements();
    let transfers = placements.transfers();
    let newest = &transfers[transfers.len().saturating_sub(most)..];
    let mut all = Vec::with_capacity(newest.len() * TRANSFER);
    for transfer in newest {
        all.extend([
            transfer.id,
            transfer.from,
            transfer.to,
            transfer.bytes as u32,
            transfer.placed as u32,
        ]);
        let fill = |cell: usize| {
            let size = transfer.begin_of(cell + 1) - transfer.begin_of(cell);
            let filled = u64::from(transfer.cells[cell]) * 255;
            filled.checked_div(size).unwrap_or(255) as u32
        };
        all.extend(
            (0..CELLS)
                .step_by(4)
                .map(|at| fill(at) | fill(at + 1) << 8 | fill(at + 2) << 16 | fill(at + 3) << 24),
        );
    }
    all
}

/// The length of a span in ns, then in each span from the beginning to now the goodput of all hosts together in Gbit/s. There are
/// at most so many: they are of 1, 2, 4, ... us.
#[must_use]
pub fn goodput(run: &Exploration, most: usize) -> Vec<f32> {
    let placements = run.placements();
    let elapsed = run.position().elapsed.ps() / BIN.ps();
    let mut width = 1;
    while elapsed as usize / width > most.max(1) {
        width *= 2;
    }
    let ns = BIN.ns() * width as u64;
    let spans = elapsed as usize / width;
    let bins = placements.bins();
    let rate = |span: usize| {
        let begin = (span * width).min(bins.len());
        let bytes: u64 = bins[begin..(begin + width).min(bins.len())].iter().sum();
        bytes as f32 * 8.0 / ns as f32
    };
    std::iter::once(ns as f32)
        .chain((0..spans).map(rate))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Explorer;

    const TEXT: &str = r#"
schema = 1
fabric = { shape = { kind = "leaf-spine", leaves = 2, hosts_per_leaf = 2, spines = 2 } }
transport = { kind = "metaroce", paths = 4 }
workload = { kind = "permutation", size_bytes = "256KiB" }
"#;

    fn opened(interventions: &str) -> Explorer {
        Explorer::new("test.toml", TEXT, "transport.paths=5\n", 3, interventions).unwrap()
    }

    #[test]
    fn records_say_what_the_run_says() {
        let mut explorer = opened("");
        explorer.advance(9e6);
        let run = &explorer.run;
        assert_eq!(links(run).len(), LINK * 8);
        let packets = packets(run);
        assert!(packets.len() >= 8 * PACKET && packets.len().is_multiple_of(PACKET));
        for packet in packets.chunks(PACKET) {
            assert!(
                packet[2] <= 1.0 && packet[3] < 5.0 && packet[5] < 4.0,
                "{packet:?}"
            );
        }
        assert_eq!(ports(run).len(), PORT * run.network().ports.len());
        let (from, to) = run.pairs()[0];
        let view = connection(run, from, to);
        assert_eq!(view.len(), CONNECTION + 5 * PATH);
        assert!(connection(run, 0, 0).is_empty());
        let counters = counters(run);
        let transfers = transfers(run, 100);
        assert_eq!(transfers.len(), 4 * TRANSFER);
        let placed: u32 = transfers.chunks(TRANSFER).map(|transfer| transfer[4]).sum();
        assert_eq!(f64::from(placed), counters[0]);
        let goodput = goodput(run, 6);
        assert_eq!((goodput.len(), goodput[0]), (5, 2_000.0));
        // The last span is not over: what was placed in it is not told yet.
        let told: f32 = goodput[1..]
            .iter()
            .map(|gbps| gbps * goodput[0] / 8.0)
            .sum();
        assert!(told > 0.0 && f64::from(told) <= counters[0], "{told}");
    }

    #[test]
    fn a_run_is_told_in_text() {
        let mut explorer = opened("");
        explorer.advance(5e6);
        explorer.act("cut-4").unwrap();
        explorer.step();
        explorer.act("lose-5-100").unwrap();
        explorer.advance(8e6);
        let mut again = opened(&explorer.interventions());
        again
            .seek(explorer.elapsed_ps(), explorer.events())
            .unwrap();
        assert_eq!(again.hash(), explorer.hash());
        explorer.advance(1e12);
        again.advance(1e12);
        assert!(again.is_over() && again.hash() == explorer.hash());
        again.seek(8e6, 0.0).unwrap();
        assert_eq!(again.elapsed_ps(), 8e6);
        assert!(explorer.act("cut-99").is_err() && explorer.act("mend-1").is_err());
    }

    #[test]
    fn wrong_text_is_an_error_that_says_where() {
        let error = Explorer::new("x.toml", "schema = 2", "", 1, "")
            .err()
            .unwrap();
        assert!(error.contains("x.toml"), "{error}");
        assert!(Explorer::new("x.toml", TEXT, "", 1, "1-2-3").is_err());
    }

    #[test]
    fn the_conversation_is_the_reference() {
        assert_eq!(crate::conversation_hash().unwrap(), "db529ab9fbab2b66");
    }
}
