"""The Scapy layers beside the core: its datagrams of all kinds, and datagrams that it takes."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import metaroce
import metaroce.scapy as wire
import pytest
from conversation import Conversation, address
from metaroce.scapy import KINDS, NO_TRAILER, OPCODES, MetaRoCE
from scapy.layers.inet import IP, UDP
from scapy.utils import rdpcap

COMMAND = os.environ["METAROCE_COMMAND"]

#: A fabric in which everything happens: losses, a path that dies, a burst from many to one, fences.
LIVELY = """
schema = 1
name = "lively"
fabric.shape = { kind = "leaf-spine", leaves = 2, hosts_per_leaf = 4, spines = 2 }
transport = { kind = "metaroce", paths = 8 }
workload = { kind = "incast", size_bytes = "4MiB" }
run.limit = "20ms"

[[fault]]
links = { tier = "leaf" }
effect = { kind = "loss", probability = "2%" }

[[fault]]
from = "200us"
until = "900us"
links = { switch = 3 }
effect = "blackhole"
"""


def rebuilt(packet: MetaRoCE) -> bytes:
    """The packet from its fields alone."""
    packet = packet.copy()
    packet.clear_cache()
    return bytes(packet)


@pytest.fixture(scope="module")
def datagrams() -> list[bytes]:
    """What conversations send."""
    seen = []
    for seed in range(30):
        conversation = Conversation(seed=seed, loss_percent=20, rounds=2)
        conversation.run()
        seen += [data for _, data in conversation.wire.seen]
    return seen


def test_the_cores_datagrams_come_out_as_they_went_in(datagrams: list[bytes]) -> None:
    kinds: Counter[str] = Counter()
    for datagram in datagrams:
        packet = MetaRoCE(datagram)
        assert bytes(packet) == datagram
        assert rebuilt(packet) == datagram, packet.show(dump=True)
        assert packet.crc != NO_TRAILER
        assert not packet.haslayer("Padding")
        kinds[KINDS[packet.kind]] += 1
    expected = {"INIT", "RETRY", "ACCEPT", "DATA", "ACK", "PROBE", "CLOSE", "CLOSE_ACK"}
    assert expected <= set(kinds), kinds


def test_fields_are_what_was_meant() -> None:
    conversation = Conversation(seed=1, loss_percent=0, rounds=1)
    conversation.run()
    packets = [MetaRoCE(datagram) for _, datagram in conversation.wire.seen]
    init = packets[0][wire.Init]
    assert (init.paths, init.planes, init.window, init.streams, init.messages) == (4, 1, 256, 2, 2)
    assert init.addresses[0].address == "::ffff:192.0.2.1" and init.addresses[0].port == 4793
    assert init.addresses[0].payload_bytes == 512 and init.capacity_mbps == 1000
    opcodes = [packet[wire.Data].opcode for packet in packets if wire.Data in packet]
    assert [OPCODES[opcode] for opcode in dict.fromkeys(opcodes)] == [
        "WRITE",
        "SEND_IMM",
        "READ_REQUEST",
        "READ_RESPONSE",
        "ATOMIC_REQUEST",
        "ATOMIC_RESPONSE",
        "WRITE_IMM",
    ]
    write = next(packet for packet in packets if wire.Data in packet)
    assert (write[wire.Data].length, write[wire.Data].address) == (4000, 0x1000)
    assert write[wire.Data].key == conversation.sides[1].region.key
    atomic = next(packet[wire.AtomicRequest] for packet in packets if wire.AtomicRequest in packet)
    assert (atomic.operation, atomic.operand) == (0, 5)
    close = next(packet[wire.Close] for packet in packets if wire.Close in packet)
    assert close.mode == 0


def test_refusals_are_read() -> None:
    asking = metaroce.Endpoint([address(0, 4793)], secret=b"a" * 32)
    deaf = metaroce.Endpoint([address(1, 4793)], secret=b"b" * 32, listen=False)
    asking.connect(0, [address(1, 4793)])
    init = asking.poll_datagram(0)
    assert init is not None
    deaf.handle_datagram(0, address(0, 50_000), init.data)
    answer = deaf.poll_datagram(0)
    assert answer is not None
    packet = MetaRoCE(answer.data)
    assert packet[wire.Reject].reason == 2 and rebuilt(packet) == answer.data


def test_the_core_takes_what_scapy_builds(datagrams: list[bytes]) -> None:
    """A core answers an INIT that Scapy wrote from nothing, and drops one for exactly what is wrong with it."""
    core = metaroce.Endpoint([address(1, 4793)], secret=b"b" * 32)

    def ask(change: Callable[[MetaRoCE], None]) -> str | None:
        packet = MetaRoCE() / wire.Init(
            id=7, addresses=[wire.PlaneAddress(address="::ffff:192.0.2.1", port=4793)]
        )
        change(packet)
        return core.handle_datagram(0, address(0, 4793), bytes(packet))

    def put(field: str, value: Any) -> Callable[[MetaRoCE], None]:
        return lambda packet: packet.setfieldval(field, value)

    assert ask(lambda packet: None) is None
    answer = core.poll_datagram(0)
    assert answer is not None
    assert KINDS[MetaRoCE(answer.data).kind] == "RETRY"
    # With the cookie it is accepted.
    retry = MetaRoCE(answer.data)[wire.Retry]
    cookie = retry.milliseconds.to_bytes(4, "big") + retry.tag

    def with_cookie(packet: MetaRoCE) -> None:
        packet[wire.Init].cookie_length = 20
        packet[wire.Init].cookie = cookie

    assert ask(with_cookie) is None
    accept = core.poll_datagram(0)
    assert accept is not None
    assert MetaRoCE(accept.data)[wire.Accept].addresses[0].address == "::ffff:192.0.2.2"
    assert ask(put("version", 2)) == "version"
    assert ask(put("crc", 1)) == "checksum"
    assert ask(put("crc", NO_TRAILER)) is not None
    assert ask(put("zero", 1)) is not None
    assert ask(lambda packet: packet[wire.Init].setfieldval("zero1", 1)) == "reserved"


@pytest.mark.parametrize(
    ("layer", "kind", "length"),
    [
        (wire.Init(), 0, 288),
        (wire.Retry(), 1, 36),
        (wire.Accept(addresses=[wire.PlaneAddress()]), 2, 72),
        (wire.Reject(), 3, 20),
        (wire.Data() / b"payload", 4, 55),
        (wire.Ack(sack=[1, 2], blocks=[wire.AckBlock(sack=[3])]), 5, 32 + 16 + 28 + 8),
        (wire.FenceAck(sack=[1]), 8, 40),
        (wire.Announce(), 9, 18),
        (wire.Hint(), 10, 20),
        (wire.Close(), 11, 24),
        (wire.CloseAck(), 12, 20),
    ],
)
def test_every_kind_has_the_length_of_table_2_and_comes_back(layer: Any, kind: int, length: int) -> None:
    built = bytes(MetaRoCE() / layer)
    assert len(built) == length + 4
    packet = MetaRoCE(built)
    assert packet.kind == kind and rebuilt(packet) == built
    again = MetaRoCE(bytes(MetaRoCE(crc=NO_TRAILER) / layer))
    assert again.crc == NO_TRAILER and len(bytes(again)) == length


@pytest.mark.parametrize("kind", [6, 7])
def test_bare_kinds_come_back(kind: int) -> None:
    built = bytes(MetaRoCE(kind=kind, psn=3, tsn=9, path=2))
    assert len(built) == 20 and rebuilt(MetaRoCE(built)) == built


def test_udp_packets_are_dissected_by_their_port() -> None:
    packet = IP(dst="192.0.2.1") / UDP(sport=50_000) / MetaRoCE() / wire.Hint(rate_mbps=5)
    assert packet[UDP].dport == 4793
    assert IP(bytes(packet))[wire.Hint].rate_mbps == 5


def record(data: dict[str, Any]) -> tuple[Any, ...]:
    """What a trace says of a packet, decoded by the core."""
    names = ("path", "generation", "psn", "tsn", "opcode", "stream", "msn", "length", "offset", "payload")
    blocks = tuple(
        (block["path"], block["cumulative"], block["newest_tsn"], len(block.get("sacked", [])), block.get("hint_mbps", 0))
        for block in data.get("blocks", [])
    )
    return (data["kind"], data.get("connection"), *(data.get(name) for name in names), blocks)


def same_record(packet: MetaRoCE, length: int) -> tuple[Any, ...]:
    """The same by these layers. A capture has neither payloads nor trailers, but the datagram's whole length."""
    kind = KINDS[packet.kind].lower()
    connected = packet.kind in (4, 5, 6, 7, 8, 9, 10)
    path, generation = (packet.path, packet.generation) if connected else (None, None)
    psn = packet.psn if packet.kind == 4 else None
    tsn = packet.tsn if packet.kind in (4, 6) else None
    data: tuple[Any, ...] = (None,) * 6
    blocks: list[tuple[int, ...]] = []
    if wire.Data in packet:
        layer = packet[wire.Data]
        opcode = OPCODES[layer.opcode].lower()
        data = (opcode, layer.stream, layer.msn, layer.length, layer.offset, length - 48 - 4)
    for layer in (packet.payload,) if packet.kind in (5, 8) else ():
        blocks.append((packet.path, packet.psn, packet.tsn, bits(layer.sack), layer.hint_mbps))
        if packet.kind == 5:
            blocks += [
                (block.path, block.psn, block.tsn, bits(block.sack), block.hint_mbps) for block in layer.blocks
            ]
    return (kind, packet.connection, path, generation, psn, tsn, *data, tuple(blocks))


def bits(words: list[int]) -> int:
    return sum(bin(word).count("1") for word in words)


def test_a_capture_reads_as_the_trace_of_the_same_run(tmp_path: Path) -> None:
    """Hundreds of packets of all kinds, dissected here and decoded by the core."""
    scenario = tmp_path / "lively.toml"
    scenario.write_text(LIVELY)
    command = [COMMAND, "sim", str(scenario), "--out", str(tmp_path), "--trace", "--pcap", "p0:h0,p0:h5", "--quiet"]
    subprocess.run(command, check=True, capture_output=True)
    with (tmp_path / "trace.ndjson").open() as lines:
        events = [json.loads(line) for line in lines][1:]
    # What is put into a queue right at the end is never on the line.
    end = events[-1]["time"] - 20_000
    sent = Counter(
        record(event["data"])
        for event in events
        if event["name"] == "transport:packet_sent" and event["host"] in (0, 5) and event["time"] < end
    )
    captured: Counter[tuple[Any, ...]] = Counter()
    kinds = set()
    for packet in rdpcap(str(tmp_path / "capture.pcapng")):
        layer = MetaRoCE(bytes(packet[UDP].payload))
        kinds.add(KINDS[layer.kind])
        captured[same_record(layer, packet[UDP].len - 8)] += 1
    missing = sent - captured
    assert sum(sent.values()) > 1000
    assert not missing, list(missing)[:3]
    assert {"DATA", "ACK", "PROBE", "FENCE", "FENCE_ACK", "ANNOUNCE", "HINT"} <= kinds, kinds
