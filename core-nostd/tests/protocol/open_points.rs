//! What the specification says and the core does not do yet (section 20). Each of these tests panics until it does:
//! then its `should_panic` goes, and its requirement moves into the specification.

use crate::puppet::*;
use crate::support::Pair;
use metaroce_core::wire::*;
use metaroce_core::*;

// MR-PROBE-010
#[test]
#[should_panic(expected = "probes for nothing")]
fn a_receiver_that_coalesces_is_not_probed() {
    let mut pair = Pair::connected(|_, endpoint, _| {
        endpoint.ack_delay = Duration::from_micros(60);
        endpoint.ack_packets = 200;
    });
    let (local, remote) = (pair.local(0, 0, 1_000_000), pair.remote(0, 0));
    let before = pair.statistics(0).probes_sent;
    for id in 0..3 {
        let local = Source::Region(local);
        let write = Operation::Write {
            local,
            remote,
            immediate: None,
        };
        pair.post(0, 0, id, write);
    }
    pair.run_until_completions(0, 3);
    let probes = pair.statistics(0).probes_sent - before;
    assert!(probes < 20, "probes for nothing: {probes}");
}
