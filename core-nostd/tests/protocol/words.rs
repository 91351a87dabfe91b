//! What many tests say and look for.

use metaroce_core::wire::*;
use metaroce_core::*;

use crate::puppet::*;
use crate::support::Pair;

pub fn plain(_: usize, _: &mut EndpointConfig, _: &mut ConnectionConfig) {}

pub fn write_megabyte(pair: &mut Pair, id: u64) {
    let local = pair.local(0, 0, 1_000_000);
    let remote = pair.remote(0, 0);
    pair.post(
        0,
        0,
        id,
        Operation::Write {
            local: Source::Region(local),
            remote,
            immediate: None,
        },
    );
}

/// One path, so that the order of things is plain.
pub fn single(change: impl Fn(&mut ConnectionConfig)) -> Puppet {
    Puppet::asked(|connection| {
        connection.paths = 1;
        change(connection);
    })
}

pub fn acceptor() -> Puppet {
    Puppet::asking(|_, _| ())
}

/// The ERROR reports in what was sent.
pub fn reports(sent: &[Sent]) -> Vec<ErrorReport> {
    only(sent, Kind::Data)
        .iter()
        .map(Sent::data)
        .filter(|(_, data, _)| data.opcode == Opcode::Error)
        .map(|(_, _, payload)| ErrorReport::decode(&payload).unwrap())
        .collect()
}

pub fn opcodes(sent: &[Sent]) -> Vec<Opcode> {
    only(sent, Kind::Data)
        .iter()
        .map(|sent| sent.data().1.opcode)
        .collect()
}

pub fn refused(code: ErrorCode) -> Result<(), DropReason> {
    Err(DropReason::Refused(code))
}

/// What answers a request.
pub fn response(request: &Sent, length: u32, opcode: Opcode) -> Data {
    Data {
        opcode,
        demand: Demand::NONE,
        stream: 0xffff,
        msn: 0,
        length,
        offset: 0,
        address: 0,
        key: request.data().1.immediate,
        immediate: 0,
    }
}

pub fn request(puppet: &Puppet, opcode: Opcode, msn: u32, offset: u64, length: u32) -> Data {
    Data {
        opcode,
        immediate: 1 << 31 | msn,
        ..puppet.write(0, msn, offset, length)
    }
}
