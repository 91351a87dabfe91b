//! What goes wrong ends, or is made good: small conversations, each of one mishap.

mod support;

use metaroce_core::*;
use support::*;

fn plain(_: usize, _: &mut EndpointConfig, _: &mut ConnectionConfig) {}

fn read(pair: &mut Pair, stream: u16, id: u64, length: u32) {
    let local = pair.local(0, 0, length);
    let remote = pair.remote(0, 0);
    pair.post(0, stream, id, Operation::Read { local, remote });
}

fn statuses(pair: &Pair, side: usize) -> Vec<(u64, Status)> {
    let each = |completion: &Completion| (completion.id, completion.status);
    pair.completions(side).iter().map(each).collect()
}

fn streams_failed(pair: &Pair, side: usize) -> usize {
    let failed = |event: &&Event| matches!(event, Event::StreamFailed { .. });
    pair.sides[side].events.iter().filter(failed).count()
}

#[test]
fn memory_that_cannot_be_read_any_more_is_reported() {
    let mut pair = Pair::connected(plain);
    pair.sides[1].memory.0.clear();
    read(&mut pair, 0, 1, 5_000);
    pair.run_until_completions(0, 1);
    assert_eq!(statuses(&pair, 0), [(1, Status::RemoteMemoryFault)]);
    pair.sides[0].memory.0.clear();
    let source = Source::Region(pair.local(0, 0, 5_000));
    pair.post(
        0,
        1,
        2,
        Operation::Write {
            local: source,
            remote: pair.remote(0, 0),
            immediate: None,
        },
    );
    pair.run_until_completions(0, 2);
    assert_eq!(statuses(&pair, 0)[1], (2, Status::LocalAccess));
    pair.run_for(1_000_000);
    assert_eq!(pair.statistics(0).outstanding, 0);
}
