//! `info`: what this program and this machine can do.

use crate::failure::Failure;
use crate::output;
use crate::units::show_size;
use clap::Args;
use metaroce_soft::core::wire;
use metaroce_soft::{MESSAGES, PATHS, RECEIVES, REGIONS, SLOTS, STREAMS, host_capabilities};
use serde_json::json;

/// Show versions, limits, and what this machine's sockets can do
#[derive(Args, Debug)]
pub struct InfoArgs {}

/// Runs the command.
///
/// # Errors
/// If not even a loopback socket can be opened.
pub fn run(_: &InfoArgs, json: bool) -> Result<(), Failure> {
    let host = host_capabilities().map_err(|error| {
        Failure::System(format!("cannot open a UDP socket on 127.0.0.1: {error}"))
    })?;
    let version = env!("CARGO_PKG_VERSION");
    if json {
        output::json(&json!({
            "version": version,
            "wire_version": wire::VERSION,
            "limits": {
                "paths": PATHS, "outstanding_packets": SLOTS, "streams": STREAMS, "open_messages": MESSAGES,
                "regions": REGIONS, "posted_buffers": RECEIVES, "planes": wire::MAX_PLANES,
                "payload_bytes": wire::MAX_PAYLOAD, "message_bytes": wire::MAX_MESSAGE,
            },
            "host": {
                "send_segments": host.send_segments, "receive_coalescing": host.receive_coalescing,
                "send_buffer_bytes": host.send_buffer, "receive_buffer_bytes": host.receive_buffer,
                "ecn_ipv4": host.ecn_ipv4, "ecn_ipv6": host.ecn_ipv6, "descriptors": host.descriptors,
            },
        }));
        return Ok(());
    }
    let yes = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
    output::line(format_args!(
        "metaroce {version}, wire version {} (our own layout, provisional)\n",
        wire::VERSION
    ));
    output::line(output::facts(&[
        ("Paths per connection", PATHS.to_string()),
        ("Unacknowledged packets per connection", SLOTS.to_string()),
        ("Streams per connection", STREAMS.to_string()),
        ("Open operations per connection", MESSAGES.to_string()),
        ("Registered regions", REGIONS.to_string()),
        ("Posted receive buffers", RECEIVES.to_string()),
        ("Planes", wire::MAX_PLANES.to_string()),
        ("Payload of a packet", show_size(wire::MAX_PAYLOAD as u64)),
        (
            "Longest message",
            show_size(u64::from(wire::MAX_MESSAGE) + 1) + " - 1 B",
        ),
    ]));
    output::line("\nThis machine's sockets");
    output::line(output::facts(&[
        ("Datagrams per send (GSO)", host.send_segments.to_string()),
        (
            "Datagrams joined on receipt (GRO)",
            yes(host.receive_coalescing),
        ),
        ("Send buffer", show_size(host.send_buffer as u64)),
        ("Receive buffer", show_size(host.receive_buffer as u64)),
        ("ECN field intact, IPv4", yes(host.ecn_ipv4)),
        (
            "ECN field intact, IPv6",
            host.ecn_ipv6.map_or("no IPv6".to_owned(), yes),
        ),
        (
            "File descriptors",
            host.descriptors
                .map_or("unlimited".to_owned(), |limit| limit.to_string()),
        ),
    ]));
    Ok(())
}
