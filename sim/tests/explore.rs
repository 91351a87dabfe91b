//! Going through a run step by step comes to what the run comes to, whatever the steps, and what is done to it is repeated to the bit.

use metaroce_sim::explore::{Action, Exploration, Intervention, Position};
use metaroce_sim::packet::PacketId;
use metaroce_sim::port::Node;
use metaroce_sim::scenario::{Document, NoFiles, Scenario, Unwatched, execute};
use metaroce_sim::time::Time;

const TEXT: &str = r#"
schema = 1
fabric = { shape = { kind = "leaf-spine", leaves = 2, hosts_per_leaf = 4, spines = 4 } }
transport = { kind = "metaroce", paths = 8 }
workload = { kind = "permutation", size_bytes = "200KiB" }
"#;

fn scenario(set: &[&str]) -> Scenario {
    let document = Document::parse("test.toml", TEXT, set, &NoFiles);
    document.unwrap_or_else(|error| panic!("{error}")).scenario
}

fn run(set: &[&str]) -> Exploration {
    Exploration::new(scenario(set), 1).unwrap_or_else(|error| panic!("{error}"))
}

fn hash(run: &Exploration) -> u64 {
    run.network().trace_hash()
}

#[test]
fn an_exploration_comes_to_what_a_run_comes_to() {
    for transport in ["metaroce", "rocev2", "infiniband", "ultra-ethernet"] {
        let kind = format!("transport.kind={transport}");
        let set = [kind.as_str()];
        let report = execute(&scenario(&set), 1, &mut Unwatched).unwrap();
        let mut explored = run(&set);
        // Uneven stretches, single events between.
        let mut to = Time::ZERO;
        for i in 1..2_000_u64 {
            to += Time::from_ps(1 + i * 7_919 % 900_000);
            explored.advance(to);
            explored.step();
            assert!(explored.network().is_conserved());
        }
        explored.advance(Time::from_ms(1_000));
        assert!(explored.is_over());
        assert_eq!(
            format!("{:016x}", hash(&explored)),
            report.summary.hash,
            "{transport}"
        );
        assert_eq!(explored.counters(), report.summary.counters);
    }
}

#[test]
fn memory_fills_to_the_last_byte() {
    for set in [
        &["transport.kind=metaroce"][..],
        &["transport.kind=rocev2"],
        &["workload={kind=\"collective\",operation=\"all-to-all\",size_bytes=\"64KiB\",repeat=2}"],
    ] {
        let mut explored = run(set);
        explored
            .act(Action::Lose {
                link: 9,
                permille: 20,
            })
            .unwrap();
        explored.advance(Time::from_us(10));
        let half = explored.placements().transfers().to_vec();
        assert!(half.iter().any(|t| t.placed > 0 && t.placed < t.bytes));
        explored.advance(Time::from_ms(1_000));
        let all = explored.placements().transfers().to_vec();
        assert!(all.len() >= 8);
        for transfer in all {
            assert_eq!(transfer.placed, transfer.bytes, "{transfer:?}");
            let cells: u64 = transfer.cells.iter().map(|&bytes| u64::from(bytes)).sum();
            assert_eq!(cells, transfer.bytes);
        }
        let bins: u64 = explored.placements().bins().iter().sum();
        assert_eq!(bins, explored.counters().placed_bytes);
    }
}

#[test]
fn a_cut_link_is_gone_around_and_the_run_is_repeated_from_its_text() {
    let mut explored = run(&[]);
    let spine = |explored: &Exploration| {
        let links = explored.links().iter();
        links
            .clone()
            .position(|link| matches!(link.lower, Node::Switch(_)))
            .unwrap() as u32
    };
    let link = spine(&explored);
    explored.advance(Time::from_us(5));
    explored.act(Action::Cut { link }).unwrap();
    for _ in 0..100 {
        explored.step();
    }
    assert!(!explored.network().ports[explored.links()[link as usize].up as usize].is_up());
    explored
        .act(Action::Slow {
            link: link + 1,
            mbps: 10_000,
        })
        .unwrap();
    explored.advance(Time::from_us(9));
    explored.act(Action::Repair { link }).unwrap();
    explored.advance(Time::from_us(12));
    let (here, there) = (explored.position(), hash(&explored));
    explored.advance(Time::from_ms(1_000));
    let end = hash(&explored);
    assert!(explored.is_over() && explored.counters().retransmissions > 0);

    let text: Vec<String> = explored
        .interventions()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(text.len(), 3);
    let again = || {
        text.iter()
            .map(|text| text.parse().unwrap())
            .collect::<Vec<Intervention>>()
    };
    let mut repeated = Exploration::with_interventions(scenario(&[]), 1, again()).unwrap();
    repeated.seek(here).unwrap();
    assert_eq!((repeated.position(), hash(&repeated)), (here, there));
    repeated.advance(Time::from_ms(1_000));
    assert_eq!(hash(&repeated), end);
    // Back, and forth again.
    repeated.seek(here).unwrap();
    assert_eq!(hash(&repeated), there);
    repeated.advance(Time::from_ms(1_000));
    assert_eq!(hash(&repeated), end);
    assert_ne!(end, {
        let mut other = run(&[]);
        other.advance(Time::from_ms(1_000));
        hash(&other)
    });
}

#[test]
fn an_intervention_can_be_made_when_all_that_is_due_has_happened() {
    let mut explored = run(&[]);
    explored.advance(Time::from_us(7));
    explored
        .act(Action::Lose {
            link: 2,
            permille: 300,
        })
        .unwrap();
    explored.advance(Time::from_ms(1_000));
    let next = vec!["7000000-0-lose-2-300".parse().unwrap()];
    let mut told = Exploration::with_interventions(scenario(&[]), 1, next).unwrap();
    told.advance(Time::from_ms(1_000));
    assert_eq!(hash(&told), hash(&explored));
    assert_eq!(told.interventions(), explored.interventions());
}

#[test]
fn one_packet_is_lost_wherever_it_is_and_sent_again() {
    for (transport, waiting) in [("metaroce", false), ("metaroce", true), ("rocev2", false)] {
        let kind = format!("transport.kind={transport}");
        let mut explored = run(&[&kind, "workload={kind=\"incast\",size_bytes=\"64KiB\"}"]);
        explored.advance(Time::from_us(6));
        let find = |id: PacketId| explored.network().packets.get(id).is_data();
        let packet = explored.network().ports.iter().find_map(|port| {
            if waiting {
                port.waiting().find(|&id| find(id))
            } else {
                port.flying().map(|(_, id)| id).find(|&id| find(id))
            }
        });
        let packet = packet.expect("there is one").0;
        explored.act(Action::Drop { packet }).unwrap();
        assert!(explored.network().is_conserved());
        assert!(explored.act(Action::Drop { packet }).is_err(), "it is gone");
        explored.advance(Time::from_ms(1_000));
        assert!(explored.is_over() && explored.network().is_conserved());
        assert!(explored.counters().retransmissions > 0, "{transport}");
    }
}

#[test]
fn what_is_not_there_is_an_error() {
    let mut explored = run(&[]);
    assert!(explored.act(Action::Cut { link: 1_000 }).is_err());
    assert!(explored.act(Action::Drop { packet: u32::MAX }).is_err());
    assert!(explored.interventions().is_empty());
    assert_eq!(explored.position().elapsed, Time::ZERO);
    assert!(explored.seek(Position::default()).is_ok());
    let nowhere = vec!["7000000-0-cut-1000".parse().unwrap()];
    let error = Exploration::with_interventions(scenario(&[]), 1, nowhere).err();
    let error = error.expect("an error").to_string();
    assert!(error.contains("there is no link 1000"), "{error}");
}

#[test]
fn connections_show_their_paths() {
    let mut explored = run(&[]);
    explored.advance(Time::from_us(8));
    let (from, to) = explored.pairs()[0];
    let view = explored.connection(from, to).unwrap();
    assert_eq!(view.paths.len(), 8);
    assert!(view.window > 0 && view.outstanding > 0);
    assert!(view.paths.iter().any(|path| path.next > path.cumulative));
    assert!(explored.connection(from, from).is_none());

    let mut roce = run(&["transport.kind=rocev2"]);
    roce.advance(Time::from_us(8));
    let view = roce.connection(from, to).unwrap();
    assert_eq!(view.paths.len(), 1);
    assert!(view.outstanding > 0 && view.rate_mbps > 0);
}
