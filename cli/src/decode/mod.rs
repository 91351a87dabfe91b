//! `decode`: this protocol's packets in a capture file.

mod capture;
mod describe;

use crate::failure::Failure;
use crate::output;
use crate::units::show_count;
use clap::Args;
use metaroce_soft::core::wire::{self, Header, Trailer};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Print the packets of this protocol in a pcap or pcapng file
#[derive(Args, Debug)]
pub struct DecodeArgs {
    /// The capture file
    file: PathBuf,
    /// Only datagrams to or from this UDP port [default: any that look like this protocol]
    #[arg(long)]
    port: Option<u16>,
    /// The connections have agreed to leave the checksum out
    #[arg(long)]
    no_checksum: bool,
    /// Only the counts at the end
    #[arg(long)]
    summary: bool,
}

/// Runs the command.
///
/// # Errors
/// If the file cannot be read or is no capture.
pub fn run(arguments: &DecodeArgs, json: bool) -> Result<(), Failure> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let (mut frames, mut ours, mut malformed, mut marked) = (0u64, 0u64, 0u64, 0u64);
    let mut packets = Vec::new();
    capture::read(&arguments.file, |frame| {
        frames += 1;
        let Some(datagram) = frame.datagram() else {
            return;
        };
        let port_fits = arguments.port.is_none_or(|port| {
            datagram.source.port() == port || datagram.destination.port() == port
        });
        // Without a port given, whatever does not even have a header of this version is somebody else's.
        if !port_fits || (arguments.port.is_none() && Header::decode(datagram.payload).is_err()) {
            return;
        }
        ours += 1;
        marked += u64::from(datagram.ecn == 3);
        let read = decode(&datagram, arguments.no_checksum);
        let name = match &read {
            Ok(said) => said.kind.clone(),
            Err(reason) => {
                malformed += 1;
                format!("malformed: {}", reason.0)
            }
        };
        *counts.entry(name).or_default() += 1;
        if arguments.summary {
            return;
        }
        if json {
            packets.push(to_json(frames, frame.time, &datagram, &read));
        } else {
            output::line(to_text(frames, frame.time, &datagram, &read));
        }
    })?;
    if json {
        output::json(&json!({
            "command": "decode", "frames": frames, "packets_of_ours": ours, "malformed": malformed, "ce_marked": marked,
            "by_kind": counts, "packets": packets,
        }));
    } else {
        let kinds: Vec<_> = counts
            .iter()
            .map(|(name, count)| format!("{} {name}", show_count(*count)))
            .collect();
        output::line(format_args!(
            "{} of {} frames are of this protocol, {} malformed, {} CE-marked: {}",
            show_count(ours),
            show_count(frames),
            show_count(malformed),
            show_count(marked),
            if kinds.is_empty() {
                "none".to_owned()
            } else {
                kinds.join(", ")
            }
        ));
    }
    Ok(())
}

/// Why a datagram is malformed, and the bytes it began with.
type Reason = (String, String);

fn decode(
    datagram: &capture::Datagram<'_>,
    no_checksum: bool,
) -> Result<describe::Description, Reason> {
    let payload = datagram.payload;
    let reason = |error: wire::DecodeError| {
        let start: Vec<_> = payload
            .iter()
            .take(16)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        (error.to_string(), start.join(" "))
    };
    let header = Header::decode(payload).map_err(reason)?;
    // Setting up always carries a checksum.
    let trailer = if no_checksum && !header.kind.is_setup() {
        Trailer::None
    } else {
        Trailer::Crc32c
    };
    if payload.len() < datagram.length {
        return Ok(decode_part(datagram, &header, trailer));
    }
    let body = wire::check(payload, trailer).map_err(reason)?;
    wire::decode(body)
        .map(|packet| describe::describe(&header, &packet))
        .map_err(reason)
}

/// What can be said of a datagram of which the capture has only the beginning: all of it if what is missing is payload.
fn decode_part(
    datagram: &capture::Datagram<'_>,
    header: &Header,
    trailer: Trailer,
) -> describe::Description {
    let mut bytes = datagram.payload.to_vec();
    bytes.resize(datagram.length.saturating_sub(trailer.size()), 0);
    let mut said = wire::decode(&bytes).map_or_else(
        |_| describe::header(header),
        |packet| describe::describe(header, &packet),
    );
    said.fields
        .push(("captured", json!(datagram.payload.len())));
    said
}

fn to_text(
    number: u64,
    time: f64,
    datagram: &capture::Datagram<'_>,
    read: &Result<describe::Description, Reason>,
) -> String {
    let ecn = if datagram.ecn == 3 { " CE" } else { "" };
    let start = format!(
        "{number:>6} {time:.6} {} > {}{ecn} {} B",
        datagram.source, datagram.destination, datagram.length
    );
    match read {
        Ok(said) => {
            let fields: Vec<_> = said
                .fields
                .iter()
                .map(|(name, value)| format!("{name} {}", plain(value)))
                .collect();
            format!("{start} {} {}", said.kind, fields.join(" "))
        }
        Err((reason, bytes)) => format!("{start} MALFORMED {reason} [{bytes}]"),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn to_json(
    number: u64,
    time: f64,
    datagram: &capture::Datagram<'_>,
    read: &Result<describe::Description, Reason>,
) -> Value {
    let mut object = json!({
        "frame": number, "time": time, "source": datagram.source.to_string(),
        "destination": datagram.destination.to_string(), "ecn": datagram.ecn, "bytes": datagram.length,
    });
    match read {
        Ok(said) => {
            object["kind"] = json!(said.kind);
            object["fields"] = Value::Object(
                said.fields
                    .iter()
                    .cloned()
                    .map(|(name, value)| (name.to_owned(), value))
                    .collect(),
            );
        }
        Err((reason, bytes)) => {
            object["malformed"] = json!(reason);
            object["begins_with"] = json!(bytes);
        }
    }
    object
}
