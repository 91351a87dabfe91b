use metaroce_sim::{
    endpoint::LargeEndpoint,
    fabric::*,
    node::*,
    random::*,
    simulation::Simulation,
    time::Time,
    transport::metaroce,
    workload::{program::*, run::*},
};
fn main() {
    let a: Vec<u64> = std::env::args()
        .skip(1)
        .map(|x| x.parse().unwrap())
        .collect();
    let (k, paths, seed) = (a[0] as u32, a[1] as u8, a[2]);
    let shape = Shape::fat_tree(k);
    let n = shape.hosts();
    let fabric = Fabric::new(
        &FabricConfig {
            shape,
            ..Default::default()
        },
        seed,
    )
    .unwrap();
    let mut program = Program::new(n);
    let mut random = Stream::new(seed, Purpose::Scenario, 0);
    let mut perm: Vec<u32> = (0..n).collect();
    loop {
        for i in (1..n as usize).rev() {
            let j = random.below(i as u64 + 1) as usize;
            perm.swap(i, j);
        }
        if perm.iter().enumerate().all(|(i, &p)| i as u32 != p) {
            break;
        }
    }
    if a.len() > 3 {
        program
            .add(
                Action::Transfer {
                    from: 0,
                    to: n - 1,
                    bytes: 2_000_000,
                    flow: 0,
                },
                Time::ZERO,
                &[],
            )
            .unwrap();
    } else {
        for (i, &p) in perm.iter().enumerate() {
            program
                .add(
                    Action::Transfer {
                        from: i as u32,
                        to: p,
                        bytes: 2_000_000,
                        flow: 0,
                    },
                    Time::ZERO,
                    &[],
                )
                .unwrap();
        }
    }
    let config = metaroce::MetaroceConfig {
        paths,
        ..Default::default()
    };
    let mut fabric = fabric;
    fabric.network.verbose = std::env::var_os("V").is_some();
    let hosts = metaroce::hosts::<LargeEndpoint>(&config, seed, &vec![2; n as usize]).unwrap();
    let mut run = Run::new(Simulation::new(fabric.network, hosts), program);
    let t = std::time::Instant::now();
    let end = run.run(
        &RunConfig {
            settle: Time::from_us(std::env::var("SETTLE").map_or(500, |x| x.parse().unwrap())),
            ..RunConfig::default()
        },
        |_, _| std::ops::ControlFlow::Continue(()),
    );
    let secs = t.elapsed().as_secs_f64();
    let mut fct: Vec<f64> = run
        .records()
        .iter()
        .map(|r| (r.acknowledged - run.begin()).us_f64())
        .collect();
    fct.sort_by(f64::total_cmp);
    let hops = run.sim.network.hops();
    println!(
        "{end:?} n {n} paths {paths}: median {:.1} p99 {:.1} max {:.1} us; {} hops {} events in {secs:.2} s = {:.2} Mhops/s; conserved {} {:?}",
        fct[fct.len() / 2],
        fct[fct.len() * 99 / 100],
        fct[fct.len() - 1],
        hops,
        run.sim.network.events_processed(),
        hops as f64 / secs / 1e6,
        run.sim.network.is_conserved(),
        run.counters()
    );
}
