//! The transports that tables compare, each on the fabric that it is made for.

use metaroce_sim::report::Table;

/// At which backlogs switches mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Marks {
    /// Nothing reacts to them.
    None,
    /// Those of the reference figures: 37,350 to 145,250 bytes.
    Reference,
    /// Those that DCQCN is run with at 100 Gb/s where links pause (HPCC, SIGCOMM 2019, and the simulator published with it): 400 to 1,600 kB,
    /// at most 20 %; earlier ones cut a rate that comes back slowly. Where links do not pause they come too late: queues of 892 kB overflow, and
    /// a lost tail costs 67 ms.
    Dcqcn,
}

impl Marks {
    /// The settings for a queue of so many bytes, between semicolons; shorter queues are marked sooner.
    pub fn set(self, queue: u64) -> String {
        let (low, high, most) = match self {
            Self::None => return String::new(),
            Self::Reference => (37_350.min(queue / 4), 145_250.min(queue / 4 * 3), "100%"),
            Self::Dcqcn => (400_000, 1_600_000, "20%"),
        };
        format!(
            "fabric.mark_low_bytes={low};fabric.mark_high_bytes={high};fabric.mark_probability={most}"
        )
    }
}

/// A transport with the fabric settings that go with it.
#[derive(Clone, Copy, Debug)]
pub struct Rival {
    /// Its name in tables.
    pub name: &'static str,
    /// Its settings, between semicolons.
    pub transport: &'static str,
    /// Those of the fabric that it is made for.
    pub fabric: &'static str,
    /// How that marks.
    pub marks: Marks,
}

impl Rival {
    /// What is set for it.
    pub fn set(&self) -> String {
        format!("{};{}", self.unmarked(), self.own_marks())
    }

    /// The same, but for marks.
    pub fn unmarked(&self) -> String {
        format!("{};{}", self.transport, self.fabric)
    }

    /// Its marks, where they are not those that scenarios have.
    fn own_marks(&self) -> String {
        match self.marks {
            Marks::None | Marks::Reference => String::new(),
            Marks::Dcqcn => self.marks.set(u64::MAX),
        }
    }
}

/// What each of these has, as a table. `marked`: the scenario's switches mark.
pub fn table(rivals: &[Rival], marked: bool) -> Table {
    let list = |settings: &str| {
        let parts = settings.split(';').filter(|part| !part.is_empty());
        let parts: Vec<String> = parts.map(|part| format!("`{part}`")).collect();
        if parts.is_empty() {
            "as it is".to_owned()
        } else {
            parts.join(", ")
        }
    };
    let mut table = Table::new(["name", "transport", "what is set in the fabric for it"]);
    for rival in rivals {
        let marks = if marked {
            rival.own_marks()
        } else {
            String::new()
        };
        let fabric = list(&format!("{};{marks}", rival.fabric));
        table.row([rival.name.to_owned(), list(rival.transport), fabric]);
    }
    table
}

/// No flow control, queues as the scenario has them.
const LOSSY: &str = "";
/// PFC: pause at 96 KiB of a link, and as headroom two wire delays at 100 Gb/s and two packets. Marks begin where five links meet. Of 96 KiB to 2 MiB
/// this is where RoCEv2 did best in permutations and collectives.
const PAUSE: &str = "fabric.flow={ kind = \"pause\", xoff_bytes = \"96KiB\", xon_bytes = \"80KiB\", headroom_bytes = \"64KiB\" };fabric.queue_bytes=unlimited";
/// Credits for 128 KiB of a link: enough for wires of up to 5 us at 100 Gb/s.
const CREDIT: &str =
    "fabric.flow={ kind = \"credit\", bytes = \"128KiB\" };fabric.queue_bytes=unlimited";
/// Credits, and switches that choose the shortest queue.
const ADAPTIVE: &str = "fabric.spray=adaptive;fabric.flow={ kind = \"credit\", bytes = \"128KiB\" };fabric.queue_bytes=unlimited";
/// Queues as published for trimming.
const TRIM: &str = "fabric.trim=true;fabric.queue_bytes=178450";

/// MetaRoCE with 64 paths: lossy fabric, ECN.
pub const METAROCE: Rival = Rival {
    name: "MetaRoCE",
    transport: "transport.kind=metaroce;transport.paths=64",
    fabric: LOSSY,
    marks: Marks::Reference,
};
/// MetaRoCE with 8 paths.
pub const METAROCE_8: Rival = Rival {
    name: "MetaRoCE, 8 paths",
    transport: "transport.kind=metaroce;transport.paths=8",
    ..METAROCE
};
/// MetaRoCE that lets paths reorder by 8 packets.
pub const METAROCE_TOLERANT: Rival = Rival {
    name: "MetaRoCE, tolerance 8",
    transport: "transport.kind=metaroce;transport.paths=64;transport.reorder_tolerance=8",
    ..METAROCE
};
/// RoCEv2 as it is run: DCQCN and PFC, one queue pair and so one path.
pub const ROCE_PFC: Rival = Rival {
    name: "RoCEv2, PFC + DCQCN",
    transport: "transport.kind=rocev2;transport.preset=dcqcn",
    fabric: PAUSE,
    marks: Marks::Dcqcn,
};
/// The same with four queue pairs to each peer, which messages use in turn, as collective libraries do.
pub const ROCE_PFC_4: Rival = Rival {
    name: "RoCEv2, PFC + DCQCN, 4 QPs",
    transport: "transport.kind=rocev2;transport.preset=dcqcn;transport.queue_pairs=4",
    ..ROCE_PFC
};
/// RoCEv2 on the lossy fabric.
pub const ROCE_LOSSY: Rival = Rival {
    name: "RoCEv2, no PFC",
    fabric: LOSSY,
    marks: Marks::Reference,
    ..ROCE_PFC
};
/// Selective repeat on the lossy fabric.
pub const IRN: Rival = Rival {
    name: "RoCEv2, IRN",
    transport: "transport.kind=rocev2;transport.preset=irn",
    fabric: LOSSY,
    marks: Marks::None,
};
/// InfiniBand: credits, adaptive routing.
pub const INFINIBAND: Rival = Rival {
    name: "InfiniBand, adaptive",
    transport: "transport.kind=infiniband;transport.routing=adaptive",
    fabric: ADAPTIVE,
    marks: Marks::None,
};
/// InfiniBand: credits, static routing.
pub const INFINIBAND_STATIC: Rival = Rival {
    name: "InfiniBand, static",
    transport: "transport.kind=infiniband",
    fabric: CREDIT,
    marks: Marks::None,
};
/// Ultra Ethernet without trimming, sender control.
pub const ULTRA_ETHERNET: Rival = Rival {
    name: "Ultra Ethernet",
    transport: "transport.kind=ultra-ethernet",
    fabric: LOSSY,
    marks: Marks::Reference,
};
/// Ultra Ethernet with trimming switches.
pub const ULTRA_ETHERNET_TRIM: Rival = Rival {
    name: "Ultra Ethernet, trimming",
    transport: "transport.kind=ultra-ethernet;transport.sleek=false",
    fabric: TRIM,
    ..ULTRA_ETHERNET
};
/// Best effort, with DCQCN.
pub const CELERIS: Rival = Rival {
    name: "Celeris (best effort)",
    transport: "transport.kind=celeris",
    fabric: LOSSY,
    marks: Marks::Reference,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_fit_the_queue() {
        let low_and_high = |marks: Marks, queue| {
            let set = marks.set(queue);
            let numbers = set.split(';').take(2).map(|part| {
                let (_, number) = part.split_once('=').unwrap();
                number.parse::<u64>().unwrap()
            });
            numbers.collect::<Vec<_>>()
        };
        assert_eq!(low_and_high(Marks::Reference, 892_250), [37_350, 145_250]);
        assert_eq!(low_and_high(Marks::Reference, 40_000), [10_000, 30_000]);
        assert_eq!(low_and_high(Marks::Dcqcn, u64::MAX), [400_000, 1_600_000]);
    }

    #[test]
    fn the_list_says_all_that_is_set() {
        let text = table(&[METAROCE, ROCE_PFC], true).markdown();
        assert!(text.contains("| `transport.kind=metaroce`, `transport.paths=64` "));
        assert!(text.contains("| as it is "), "{text}");
        for part in ROCE_PFC.set().split(';').filter(|part| !part.is_empty()) {
            assert!(text.contains(&format!("`{part}`")), "{part}");
        }
        assert!(!table(&[ROCE_PFC], false).markdown().contains("mark_low"));
    }
}
