"""The core, stepped by hand."""

from __future__ import annotations

import sys

import metaroce
import numpy
import pytest
from conversation import COUNTER, Conversation, pattern


def endpoint(**settings: object) -> metaroce.Endpoint:
    return metaroce.Endpoint(["192.0.2.1:4793"], secret=bytes(32), **settings)  # type: ignore[arg-type]


def test_the_conversation_is_the_reference_to_the_last_byte() -> None:
    conversation = Conversation(seed=1, loss_percent=5, rounds=10)
    conversation.run()
    wire = conversation.wire
    assert (hex(wire.hash), wire.sent, wire.lost, conversation.now) == (
        "0xdb529ab9fbab2b66",
        964,
        52,
        3_660_192,
    )
    asking, answering = (side.ram for side in conversation.sides)
    mine = bytes(pattern(0, k) for k in range(4000))
    assert answering[:4000] == mine
    assert answering[5000:6500] == mine[500:2000]
    assert answering[7000:7700] == mine[100:800]
    assert int.from_bytes(answering[COUNTER : COUNTER + 8], sys.byteorder) == 60
    assert asking[4000:7000] == answering[500:3500]


@pytest.mark.parametrize("seed", range(5))
def test_other_conversations_end_too(seed: int) -> None:
    conversation = Conversation(seed=seed, loss_percent=20, rounds=2)
    conversation.run()
    assert conversation.completed == 12


def test_statistics_tell_what_happened() -> None:
    conversation = Conversation(seed=1, loss_percent=5, rounds=1)
    while conversation.completed < 6:
        conversation.step() if conversation.posted else start(conversation)
    asking = conversation.sides[0]
    assert asking.connection is not None
    all = asking.endpoint.connection_statistics(asking.connection)
    assert all is not None and all["packets_sent"] > 8 and all["window"] > 0
    path = asking.endpoint.path_statistics(asking.connection, 0)
    assert path is not None and path["state"] == "active" and path["packets_sent"] > 0
    assert asking.endpoint.path_statistics(asking.connection, 200) is None
    assert asking.endpoint.statistics()["datagrams_sent"] > 8


def start(conversation: Conversation) -> None:
    if conversation.sides[0].connection is None:
        side = conversation.sides[0]
        side.connection = side.endpoint.connect(conversation.now, ["192.0.2.2:4793"], paths=4)
    conversation.step()


def test_registered_memory_is_the_objects_own() -> None:
    core = endpoint()
    array = numpy.zeros(100, dtype=numpy.uint64)
    region = core.register(array)
    assert len(region) == 800
    region.memory[0] = 7
    assert array[0] == 7
    view = region.array(numpy.uint64)
    view[5] = 9
    assert array[5] == 9 and view.base is not None
    pages = core.register(8192)
    assert pages.base % 4096 == 0 and not pages.array().any()


def test_registered_memory_cannot_be_resized_under_the_core() -> None:
    core = endpoint()
    memory = bytearray(64)
    region = core.register(memory)
    with pytest.raises(BufferError):
        memory.extend(bytes(1000))
    region.memory.release()
    with pytest.raises(BufferError):
        memory.extend(bytes(1000))
    core.deregister(region)
    memory.extend(bytes(1000))
    with pytest.raises(metaroce.RegionError, match="deregistered"):
        region.memory
    with pytest.raises(metaroce.RegionError, match="not one of this endpoint's"):
        core.deregister(region)


@pytest.mark.parametrize(
    ("memory", "error", "text"),
    [
        (bytes(8), ValueError, "writable"),
        (0, ValueError, "0 bytes"),
        ("text", TypeError, "buffer is expected, not str"),
        (numpy.zeros((4, 4))[:, 0], ValueError, "contiguous"),
        (bytearray(), ValueError, "0 bytes"),
    ],
)
def test_what_cannot_be_registered(memory: object, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        endpoint().register(memory)  # type: ignore[arg-type]


def test_regions_are_full_and_out_of_bounds() -> None:
    core = endpoint(profile="small")
    regions = [core.register(16) for _ in range(4)]
    with pytest.raises(metaroce.RegionError, match="every region slot is taken"):
        core.register(16)
    with pytest.raises(IndexError, match="17 bytes at 0"):
        regions[0].slice(0, 17)
    assert regions[0][4:].length == 12
    with pytest.raises(metaroce.ConfigError, match="no right `x`"):
        core.register(16, "rx")


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"payload_bytes": 10}, "payload_bytes: must be 256 to 9000"),
        ({"payload_bytes": "many"}, "payload_bytes: "),
        ({"profile": "huge"}, "profile: "),
        ({"connections": 0}, "connection table"),
        ({"accept": {"run": 0}}, "run: "),
    ],
)
def test_wrong_settings_are_named(settings: dict[str, object], text: str) -> None:
    with pytest.raises(metaroce.ConfigError, match=text):
        endpoint(**settings)


def test_unknown_settings_are_named_with_those_that_there_are() -> None:
    with pytest.raises(TypeError, match="no setting `payload`; there are .*payload_bytes"):
        endpoint(payload=10)


def test_misuse_has_no_effect() -> None:
    core = endpoint()
    region = core.register(64)
    with pytest.raises(metaroce.PostError, match="no such connection"):
        core.post_write(0, 77, region[:], region.remote(), id=1)
    with pytest.raises(metaroce.ConfigError, match="'localhost' is not|\"localhost\" is not"):
        core.connect(0, ["localhost"])
    with pytest.raises(metaroce.ConnectError):
        core.connect(0, ["192.0.2.2:4793"], paths=0)
    connection = core.connect(0, ["192.0.2.2:4793"])
    with pytest.raises(metaroce.PostError, match="not established"):
        core.post_send(0, connection, b"early", id=1)
    assert core.handle_datagram(0, "192.0.2.2:5", b"noise") == "truncated"
    assert core.statistics()["drops"] == {"truncated": 1}
    with pytest.raises(OverflowError):
        core.poll_datagram(-1)


def test_values_compare_and_show_what_they_are() -> None:
    one, other = metaroce.RemoteAddress(0x1000, 7), metaroce.RemoteAddress(0x1000, 7)
    assert one == other and len({one, other}) == 1 and one + 8 == metaroce.RemoteAddress(0x1008, 7)
    assert repr(one) == "RemoteAddress(address=0x1000, key=0x7)"
    with pytest.raises(OverflowError):
        metaroce.RemoteAddress(2**64 - 1, 1) + 1
    assert metaroce.Status.Success.name == "Success" and int(metaroce.Status.Success) == 0
    assert metaroce.Status.Flushed != metaroce.Status.Success
