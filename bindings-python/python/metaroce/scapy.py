"""Scapy layers for our wire (docs/spec.md, sections 2 and 3): ``MetaRoCE(datagram)`` dissects, ``bytes(MetaRoCE(...) / Data(...))`` builds.

The trailer is the field ``crc``: left out, it is computed; ``NO_TRAILER`` says that there is none, which is also what dissecting finds
when the last four bytes are not the checksum of those before. UDP packets to port 4793 are dissected by themselves.
"""

from __future__ import annotations

from typing import Any, Optional

from scapy.fields import (
    BitEnumField,
    BitField,
    ByteEnumField,
    ByteField,
    FieldLenField,
    FieldListField,
    FlagsField,
    IP6Field,
    IntField,
    LongEnumField,
    LongField,
    PacketListField,
    ShortEnumField,
    ShortField,
    StrField,
    StrFixedLenField,
    XByteField,
    XIntField,
    XLongField,
)
from scapy.layers.inet import UDP
from scapy.packet import Packet, Raw, bind_bottom_up, bind_top_down

from ._metaroce import crc32c

PORT = 4793
NO_TRAILER = -1

KINDS = {
    0: "INIT",
    1: "RETRY",
    2: "ACCEPT",
    3: "REJECT",
    4: "DATA",
    5: "ACK",
    6: "PROBE",
    7: "FENCE",
    8: "FENCE_ACK",
    9: "ANNOUNCE",
    10: "HINT",
    11: "CLOSE",
    12: "CLOSE_ACK",
}
FLAGS = ["ACK_REQUEST", "RETRANSMISSION", "SOLICITED", "REDIRECT"]
OPCODES = {
    0: "WRITE",
    1: "WRITE_IMM",
    2: "SEND",
    3: "SEND_IMM",
    4: "READ_REQUEST",
    5: "READ_RESPONSE",
    6: "ATOMIC_REQUEST",
    7: "ATOMIC_RESPONSE",
    8: "ERROR",
    9: "NOP",
}
ERRORS = {
    1: "RECEIVER_NOT_READY",
    2: "INVALID_KEY",
    3: "OUT_OF_BOUNDS",
    4: "ACCESS_DENIED",
    5: "LENGTH_EXCEEDS_BUFFER",
    6: "INVALID_REQUEST",
    7: "STREAM_ERROR",
    8: "MEMORY_FAULT",
    9: "RESOURCE_EXHAUSTED",
}
REJECTIONS = {
    1: "no common version",
    2: "nobody listens",
    3: "no room",
    4: "parameters cannot be met",
    5: "bad cookie",
    6: "addresses not acceptable",
}


class _Trailer(XIntField):
    """The checksum behind everything: it is no field of the header, but is set and shown like one."""

    def addfield(self, pkt: Packet, s: bytes, val: Optional[int]) -> bytes:
        return s

    def getfield(self, pkt: Packet, s: bytes) -> tuple[bytes, int]:
        whole = pkt.original
        if len(whole) >= 20 and crc32c(whole[:-4]) == int.from_bytes(whole[-4:], "big"):
            return s[:-4], int.from_bytes(whole[-4:], "big")
        return s, NO_TRAILER

    def i2repr(self, pkt: Optional[Packet], x: Any) -> str:
        return "none" if x == NO_TRAILER else str(super().i2repr(pkt, x))


class MetaRoCE(Packet):
    """The common header, and the trailer."""

    name = "MetaRoCE"
    fields_desc = [
        BitField("version", 1, 4),
        BitEnumField("kind", 4, 4, KINDS),
        BitField("zero", 0, 1),
        # The first block's, of ACK and FENCE_ACK; if it is left out, what is there is counted.
        BitField("sack_words", None, 3),
        FlagsField("flags", 0, 4, FLAGS),
        ByteField("path", 0),
        ByteField("generation", 0),
        XIntField("connection", 0),
        IntField("psn", 0),
        IntField("tsn", 0),
        _Trailer("crc", None),
    ]

    def post_dissect(self, s: bytes) -> bytes:
        # What was read is not the header alone: it is built from the fields.
        self.raw_packet_cache = None
        return s

    def post_build(self, pkt: bytes, pay: bytes) -> bytes:
        if self.sack_words is None and isinstance(self.payload, (Ack, FenceAck)):
            words = len(self.payload.sack)
            pkt = pkt[:1] + bytes([pkt[1] | words << 4]) + pkt[2:]
        whole = pkt + pay
        if self.crc == NO_TRAILER:
            return whole
        crc = crc32c(whole) if self.crc is None else self.crc
        return whole + int(crc).to_bytes(4, "big")

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        return _KINDS.get(self.kind, Raw)


class _Last(Packet):
    """Nothing comes behind it."""

    def extract_padding(self, s: bytes) -> tuple[bytes, Optional[bytes]]:
        return s, None

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        return Raw


class PlaneAddress(Packet):
    """The address of a plane, in the parameters of INIT and ACCEPT."""

    name = "plane"
    fields_desc = [
        IP6Field("address", "::ffff:127.0.0.1"),
        ShortField("port", PORT),
        ShortField("payload_bytes", 4096),
    ]

    def extract_padding(self, s: bytes) -> tuple[bytes, Optional[bytes]]:
        return b"", s


def _parameters() -> list[Any]:
    return [
        ByteField("paths", 8),
        FieldLenField("planes", None, fmt="B", count_of="addresses"),
        ShortField("window", 256),
        ShortField("streams", 1),
        ShortField("messages", 1),
        ShortField("responses", 1),
        ShortField("zero2", 0),
        FlagsField("capabilities", 0, 32, ["NO_CHECKSUM"] + [f"bit{bit}" for bit in range(1, 32)]),
        IntField("capacity_mbps", 100_000),
        IntField("service", 0),
        PacketListField("addresses", [], PlaneAddress, count_from=lambda packet: packet.planes),
    ]


class Init(_Last):
    """Asks for a connection."""

    name = "INIT"
    fields_desc = [
        XIntField("id", 1),
        ByteField("lowest_version", 1),
        ByteField("highest_version", 1),
        ByteField("cookie_length", 0),
        ByteField("zero1", 0),
        StrFixedLenField("cookie", bytes(20), length=20),
        *_parameters(),
        # Up to byte 288 of the datagram; if it is left out it is filled up.
        StrField("zeros", b""),
    ]

    def post_build(self, pkt: bytes, pay: bytes) -> bytes:
        return pkt.ljust(288 - 16, b"\0") + pay


class Retry(_Last):
    """Answers INIT with a cookie."""

    name = "RETRY"
    fields_desc = [IntField("milliseconds", 0), StrFixedLenField("tag", bytes(16), length=16)]


class Accept(_Last):
    """Takes a connection."""

    name = "ACCEPT"
    fields_desc = [
        XIntField("id", 1),
        IntField("hint_mbps", 0),
        ByteField("chosen_version", 1),
        StrFixedLenField("zero1", bytes(3), length=3),
        *_parameters(),
    ]


class Reject(_Last):
    """Refuses a connection."""

    name = "REJECT"
    fields_desc = [ShortEnumField("reason", 2, REJECTIONS), ShortField("detail", 0)]


class Data(Packet):
    """Part of a message."""

    name = "DATA"
    fields_desc = [
        ByteEnumField("opcode", 0, OPCODES),
        XByteField("demand", 0),
        ShortField("stream", 0),
        IntField("msn", 0),
        IntField("length", 0),
        IntField("offset", 0),
        XLongField("address", 0),
        XIntField("key", 0),
        XIntField("immediate", 0),
    ]

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        return _OPCODES.get(self.opcode, Raw)


class AtomicRequest(_Last):
    """The payload of ATOMIC_REQUEST."""

    name = "ATOMIC_REQUEST"
    fields_desc = [
        LongEnumField("operation", 0, {0: "fetch-add", 1: "compare-swap"}),
        LongField("operand", 0),
        LongField("swap", 0),
    ]


class AtomicResponse(_Last):
    """The payload of ATOMIC_RESPONSE."""

    name = "ATOMIC_RESPONSE"
    fields_desc = [LongField("old", 0)]


class Error(_Last):
    """The payload of ERROR."""

    name = "ERROR"
    fields_desc = [
        ByteEnumField("code", 1, ERRORS),
        ByteField("attempt", 0),
        ShortField("stream", 0),
        IntField("msn", 0),
        IntField("token", 0),
        IntField("zero1", 0),
    ]


def _received() -> list[Any]:
    return [
        IntField("newest_psn", 0xFFFFFFFF),
        # In units of 16 ns.
        ShortField("delay", 0),
        ShortField("ce_count", 0),
        IntField("received", 0),
        IntField("hint_mbps", 0),
    ]


class AckBlock(Packet):
    """A further block of an ACK: another path's."""

    name = "block"
    fields_desc = [
        ByteField("path", 0),
        ByteField("generation", 0),
        FieldLenField("sack_words", None, fmt="B", count_of="sack"),
        ByteField("zero1", 0),
        IntField("psn", 0),
        IntField("tsn", 0xFFFFFFFF),
        *_received(),
        FieldListField("sack", [], XLongField("", 0), count_from=lambda packet: packet.sack_words),
    ]

    def extract_padding(self, s: bytes) -> tuple[bytes, Optional[bytes]]:
        return b"", s


def _first_words(packet: Packet) -> int:
    """How long the first block's SACK vector is: the common header has it."""
    under = packet.underlayer
    return int(under.sack_words or 0) if isinstance(under, MetaRoCE) else 0


class Ack(_Last):
    """What has arrived on a path; its cumulative PSN and newest TSN are in the common header."""

    name = "ACK"
    fields_desc = [
        *_received(),
        FieldListField("sack", [], XLongField("", 0), count_from=_first_words),
        PacketListField("blocks", [], AckBlock),
    ]


class FenceAck(_Last):
    """What had arrived in the generation that was ended."""

    name = "FENCE_ACK"
    fields_desc = [
        *_received(),
        FieldListField("sack", [], XLongField("", 0), count_from=_first_words),
    ]


class Announce(_Last):
    """A burst is coming."""

    name = "ANNOUNCE"
    fields_desc = [XByteField("demand", 0), ByteField("zero1", 0)]


class Hint(_Last):
    """The sender's share."""

    name = "HINT"
    fields_desc = [IntField("rate_mbps", 0)]


class Close(_Last):
    """Ends a connection."""

    name = "CLOSE"
    fields_desc = [
        XIntField("id", 0),
        ShortField("reason", 0),
        ByteEnumField("mode", 0, {0: "drain", 1: "abort"}),
        ByteField("zero1", 0),
    ]


class CloseAck(_Last):
    """It has ended."""

    name = "CLOSE_ACK"
    fields_desc = [XIntField("id", 0)]


_KINDS: dict[int, type[Packet]] = {
    0: Init,
    1: Retry,
    2: Accept,
    3: Reject,
    4: Data,
    5: Ack,
    8: FenceAck,
    9: Announce,
    10: Hint,
    11: Close,
    12: CloseAck,
}
_OPCODES: dict[int, type[Packet]] = {6: AtomicRequest, 7: AtomicResponse, 8: Error}

# Building sets the kind that fits the layer above.
for _number, _layer in _KINDS.items():
    bind_top_down(MetaRoCE, _layer, kind=_number)
for _number, _layer in _OPCODES.items():
    bind_top_down(Data, _layer, opcode=_number)
bind_top_down(UDP, MetaRoCE, dport=PORT)
bind_bottom_up(UDP, MetaRoCE, dport=PORT)
