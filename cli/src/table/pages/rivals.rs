//! The transports that tables compare, each on the fabric that it is made for.

/// A transport with the fabric settings that go with it.
#[derive(Clone, Copy, Debug)]
pub struct Rival {
    /// Its name in tables.
    pub name: &'static str,
    /// What is set for it, between semicolons.
    pub set: &'static str,
}

/// MetaRoCE with 64 paths: lossy fabric, ECN.
pub const METAROCE: Rival = Rival {
    name: "MetaRoCE",
    set: "transport.kind=metaroce;transport.paths=64",
};
/// RoCEv2 as it is run: DCQCN and PFC, one queue pair and so one path.
pub const ROCE_PFC: Rival = Rival {
    name: "RoCEv2, PFC + DCQCN",
    set: "transport.kind=rocev2;transport.preset=dcqcn;fabric.flow={ kind = \"pause\", xoff_bytes = \"96KiB\", xon_bytes = \"80KiB\", headroom_bytes = \"64KiB\" };fabric.queue_bytes=unlimited",
};
/// The same with four queue pairs to each peer, as collective libraries do.
pub const ROCE_PFC_4: Rival = Rival {
    name: "RoCEv2, PFC + DCQCN, 4 QPs",
    set: "transport.kind=rocev2;transport.preset=dcqcn;transport.queue_pairs=4;fabric.flow={ kind = \"pause\", xoff_bytes = \"96KiB\", xon_bytes = \"80KiB\", headroom_bytes = \"64KiB\" };fabric.queue_bytes=unlimited",
};
/// RoCEv2 on the lossy fabric.
pub const ROCE_LOSSY: Rival = Rival {
    name: "RoCEv2, no PFC",
    set: "transport.kind=rocev2;transport.preset=dcqcn",
};
/// Selective repeat on the lossy fabric.
pub const IRN: Rival = Rival {
    name: "RoCEv2, IRN",
    set: "transport.kind=rocev2;transport.preset=irn",
};
/// InfiniBand: credits, adaptive routing.
pub const INFINIBAND: Rival = Rival {
    name: "InfiniBand, adaptive",
    set: "transport.kind=infiniband;transport.routing=adaptive;fabric.spray=adaptive;fabric.flow={ kind = \"credit\", bytes = \"128KiB\" };fabric.queue_bytes=unlimited",
};
/// InfiniBand: credits, static routing.
pub const INFINIBAND_STATIC: Rival = Rival {
    name: "InfiniBand, static",
    set: "transport.kind=infiniband;fabric.flow={ kind = \"credit\", bytes = \"128KiB\" };fabric.queue_bytes=unlimited",
};
/// Ultra Ethernet without trimming, sender control.
pub const ULTRA_ETHERNET: Rival = Rival {
    name: "Ultra Ethernet",
    set: "transport.kind=ultra-ethernet",
};
/// Ultra Ethernet with trimming switches.
pub const ULTRA_ETHERNET_TRIM: Rival = Rival {
    name: "Ultra Ethernet, trimming",
    set: "transport.kind=ultra-ethernet;transport.sleek=false;fabric.trim=true;fabric.queue_bytes=178450",
};
/// Best effort.
pub const CELERIS: Rival = Rival {
    name: "Celeris (best effort)",
    set: "transport.kind=celeris",
};
