//! Real processes in two network namespaces with two planes between them (veth), over which the kernel loses and marks
//! packets. Needs root, iproute2, nftables and ethtool; fails, saying so, where they are missing.

mod world;

use serde_json::Value;
use std::time::Duration;
use world::{Side, World};

const SIZE: u64 = 32 << 20;

/// Writes and reads back every byte, over both planes, with this loss both ways.
fn transfer(ipv6: bool, per_mille: u32) {
    let world = World::new(ipv6);
    world.lose(per_mille);
    let _server = world.serve("16MiB");
    let perf = world.perf(
        "write",
        &["--verify", "--bytes", "32MiB", "--window", "16MiB"],
    );
    let (code, result) = perf.finish();
    assert_eq!(code, Some(0), "{result}");
    let size = &result["results"][0];
    assert_eq!(size["verified_bytes"], SIZE, "{result}");
    assert_eq!(
        (&size["unreported"], &size["failed"]),
        (&Value::from(0), &serde_json::json!({}))
    );
    let connection = &result["connection"];
    if per_mille > 0 {
        // What the filter dropped, and nothing else, was lost on the way there.
        assert!(world.lost(Side::There) > 0 && world.lost(Side::Here) > 0);
        assert!(
            connection["retransmissions"].as_u64().unwrap() > 0,
            "{connection}"
        );
    }
    assert_eq!(connection["sends_refused"], 0);
}

#[test]
fn netns_ipv4_loss_0() {
    transfer(false, 0);
}

#[test]
fn netns_ipv4_loss_1() {
    transfer(false, 10);
}

#[test]
fn netns_ipv4_loss_5() {
    transfer(false, 50);
}

#[test]
fn netns_ipv4_loss_10() {
    transfer(false, 100);
}

#[test]
fn netns_ipv6_loss_0() {
    transfer(true, 0);
}

#[test]
fn netns_ipv6_loss_1() {
    transfer(true, 10);
}

#[test]
fn netns_ipv6_loss_5() {
    transfer(true, 50);
}

#[test]
fn netns_ipv6_loss_10() {
    transfer(true, 100);
}

/// CE marks that the kernel sets are counted and brought back to the sender.
fn marks(ipv6: bool) {
    let world = World::new(ipv6);
    world.mark(Side::There, 10);
    let _server = world.serve("16MiB");
    let (code, result) = world
        .perf(
            "write",
            &["--verify", "--bytes", "32MiB", "--window", "16MiB"],
        )
        .finish();
    assert_eq!(code, Some(0), "{result}");
    assert_eq!(result["results"][0]["verified_bytes"], SIZE);
    let connection = &result["connection"];
    let count = |name: &str| connection[name].as_u64().unwrap();
    let share = count("ce_marks") as f64 / count("packets_sent") as f64;
    assert!(
        (0.05..0.2).contains(&share),
        "{share} of all packets marked: {connection}"
    );
}

#[test]
fn netns_ipv4_marks() {
    marks(false);
}

#[test]
fn netns_ipv6_marks() {
    marks(true);
}

/// A plane is taken down in the middle of a transfer and brought back: nothing fails, and both are noticed.
fn plane_down(ipv6: bool) {
    let world = World::new(ipv6);
    world.lose(10);
    let _server = world.serve("16MiB");
    let perf = world.perf(
        "write",
        &["--verify", "--duration", "10m", "--window", "16MiB"],
    );
    perf.event("opened");
    world.set_plane(1, false);
    assert_eq!(perf.event("plane_down")["plane"], 1);
    world.set_plane(1, true);
    assert_eq!(perf.event("plane_up")["plane"], 1);
    perf.signal("INT");
    let (code, result) = perf.finish();
    assert_eq!(code, Some(130), "{result}");
    let size = &result["results"][0];
    assert_eq!(
        (&size["unreported"], &size["failed"]),
        (&Value::from(0), &serde_json::json!({})),
        "{result}"
    );
    assert!(size["verified_bytes"].as_u64().unwrap() > 0);
    assert!(result["connection"]["fences"].as_u64().unwrap() > 0);
}

#[test]
fn netns_ipv4_plane_down_and_back() {
    plane_down(false);
}

#[test]
fn netns_ipv6_plane_down_and_back() {
    plane_down(true);
}

/// The documented time: the failure timeout, and what a busy machine takes to notice.
const FAILURE_TIMEOUT: Duration = Duration::from_secs(2);
const NOTICING: Duration = Duration::from_secs(1);

#[test]
fn netns_killed_peer_ends_every_open_operation_in_time() {
    let world = World::new(false);
    let server = world.serve("16MiB");
    let perf = world.perf(
        "write",
        &[
            "--duration",
            "10m",
            "--depth",
            "24",
            "--streams",
            "4",
            "--window",
            "16MiB",
        ],
    );
    perf.event("opened");
    assert_eq!(server.line()["event"], "connected");
    server.signal("KILL");
    let (code, result) = perf.finish();
    assert_eq!(code, Some(4), "{result}");
    let size = &result["results"][0];
    // Every operation that was open ended with an error, and none was forgotten.
    assert_eq!(size["unreported"], 0, "{result}");
    let failed: u64 = size["failed"]
        .as_object()
        .unwrap()
        .values()
        .map(|count| count.as_u64().unwrap())
        .sum();
    assert_eq!(size["failed"]["ConnectionLost"], failed);
    assert!((1..=24).contains(&failed));
    assert_eq!(
        size["posted"].as_u64().unwrap(),
        size["operations"].as_u64().unwrap() + failed
    );
    let silence = Duration::from_secs_f64(size["silence_seconds"].as_f64().unwrap());
    assert!(silence <= FAILURE_TIMEOUT + NOTICING, "{silence:?}");
}
