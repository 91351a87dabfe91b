//! The transports that tables compare, each on the fabric that it is made for.

/// A transport with the fabric settings that go with it.
#[derive(Clone, Copy, Debug)]
pub struct Rival {
    /// Its name in tables.
    pub name: &'static str,
    /// Its settings, between semicolons.
    pub transport: &'static str,
    /// Those of the fabric that it is made for.
    pub fabric: &'static str,
}

impl Rival {
    /// What is set for it.
    pub fn set(&self) -> String {
        format!("{};{}", self.transport, self.fabric)
    }
}

/// No flow control, queues as the scenario has them.
const LOSSY: &str = "";
/// PFC: pause at 96 KiB of a link, and as headroom two wire delays at 100 Gb/s and two packets.
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
};
/// MetaRoCE with 8 paths.
pub const METAROCE_8: Rival = Rival {
    name: "MetaRoCE, 8 paths",
    transport: "transport.kind=metaroce;transport.paths=8",
    fabric: LOSSY,
};
/// MetaRoCE that lets paths reorder by 8 packets.
pub const METAROCE_TOLERANT: Rival = Rival {
    name: "MetaRoCE, tolerance 8",
    transport: "transport.kind=metaroce;transport.paths=64;transport.reorder_tolerance=8",
    fabric: LOSSY,
};
/// RoCEv2 as it is run: DCQCN and PFC, one queue pair and so one path.
pub const ROCE_PFC: Rival = Rival {
    name: "RoCEv2, PFC + DCQCN",
    transport: "transport.kind=rocev2;transport.preset=dcqcn",
    fabric: PAUSE,
};
/// The same with four queue pairs to each peer, as collective libraries do.
pub const ROCE_PFC_4: Rival = Rival {
    name: "RoCEv2, PFC + DCQCN, 4 QPs",
    transport: "transport.kind=rocev2;transport.preset=dcqcn;transport.queue_pairs=4",
    fabric: PAUSE,
};
/// RoCEv2 on the lossy fabric.
pub const ROCE_LOSSY: Rival = Rival {
    name: "RoCEv2, no PFC",
    transport: "transport.kind=rocev2;transport.preset=dcqcn",
    fabric: LOSSY,
};
/// Selective repeat on the lossy fabric.
pub const IRN: Rival = Rival {
    name: "RoCEv2, IRN",
    transport: "transport.kind=rocev2;transport.preset=irn",
    fabric: LOSSY,
};
/// InfiniBand: credits, adaptive routing.
pub const INFINIBAND: Rival = Rival {
    name: "InfiniBand, adaptive",
    transport: "transport.kind=infiniband;transport.routing=adaptive",
    fabric: ADAPTIVE,
};
/// InfiniBand: credits, static routing.
pub const INFINIBAND_STATIC: Rival = Rival {
    name: "InfiniBand, static",
    transport: "transport.kind=infiniband",
    fabric: CREDIT,
};
/// Ultra Ethernet without trimming, sender control.
pub const ULTRA_ETHERNET: Rival = Rival {
    name: "Ultra Ethernet",
    transport: "transport.kind=ultra-ethernet",
    fabric: LOSSY,
};
/// Ultra Ethernet with trimming switches.
pub const ULTRA_ETHERNET_TRIM: Rival = Rival {
    name: "Ultra Ethernet, trimming",
    transport: "transport.kind=ultra-ethernet;transport.sleek=false",
    fabric: TRIM,
};
/// Best effort.
pub const CELERIS: Rival = Rival {
    name: "Celeris (best effort)",
    transport: "transport.kind=celeris",
    fabric: LOSSY,
};
