"""Plots show the figures that they are made of."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import matplotlib.pyplot as plt
import metaroce
import metaroce.plot
import numpy
import pytest
from conversation import Conversation
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from metaroce.scapy import Ack, Data, MetaRoCE

SCENARIO = {
    "schema": 1,
    "fabric": {"shape": {"kind": "star", "hosts": 4}},
    "transport": {"kind": "metaroce", "paths": 4},
    "workload": {"kind": "incast", "size_bytes": "256KiB"},
    "fault": [{"links": {"tier": "host"}, "effect": {"kind": "loss", "probability": 0.02}}],
}


@pytest.fixture(autouse=True)
def closed_figures() -> object:
    yield
    plt.close("all")


def xs(line: Line2D) -> list[float]:
    return [float(value) for value in numpy.asarray(line.get_xdata())]


def ys(line: Line2D) -> list[float]:
    return [float(value) for value in numpy.asarray(line.get_ydata())]


def points(axes: Axes, marker: str) -> int:
    return sum(len(xs(line)) for line in axes.get_lines() if line.get_marker() == marker)


def test_time_sequence_has_every_packet_of_the_sender(tmp_path: Path) -> None:
    trace = tmp_path / "trace.ndjson"
    result = metaroce.simulate(SCENARIO, 1, trace=trace)
    events = metaroce.plot.events(trace)
    sent = [
        event["data"]
        for event in events
        if event["name"] == "transport:packet_sent" and event["data"]["kind"] == "data"
    ]
    of_two = [data for data in sent if data["source"] == 2]
    axes = metaroce.plot.time_sequence(trace, host=2)
    assert points(axes, ".") == sum(not data.get("retransmission") for data in of_two) >= 64
    assert points(axes, "x") == sum(bool(data.get("retransmission")) for data in of_two) > 0
    assert points(axes, "o") > 0
    assert axes.get_title().startswith("host 2 to 0")
    one = metaroce.plot.time_sequence(iter(events), host=2, paths=[1])
    assert points(one, ".") == sum(data["path"] == 1 and not data.get("retransmission") for data in of_two)
    assert result.end == "complete"
    with pytest.raises(ValueError, match="no data packets of host 77"):
        metaroce.plot.time_sequence(trace, host=77)
    with pytest.raises(ValueError, match="no data packets"):
        metaroce.plot.time_sequence([])
    trace.write_text("{}\n")
    with pytest.raises(ValueError, match="not a trace of version 1"):
        metaroce.plot.time_sequence(trace)


def drawn(axes: Axes, style: str) -> list[tuple[float, float]]:
    """The points with a marker, or of the lines that are stepped."""
    lines = [line for line in axes.get_lines() if style in (line.get_marker(), line.get_drawstyle())]
    return [point for line in lines for point in zip(xs(line), ys(line))]


def test_time_sequence_of_endpoints_that_are_stepped_has_every_datagram() -> None:
    """What is drawn, path by path, beside what another decoder reads in the same datagrams."""
    conversation = Conversation(seed=1, loss_percent=20, rounds=4)
    conversation.run()
    seen = conversation.wire.seen
    packets = [(time / 1e3, MetaRoCE(data)) for time, data in seen]
    # The side that asks sends most; that which answers sends what was read.
    (first, most), (second, fewer) = Counter(packet.connection for _, packet in packets if Data in packet).most_common()
    assert most > fewer > 10
    for connection, other in ((first, second), (second, first)):
        for path in range(4):
            axes = metaroce.plot.time_sequence(seen, connection=connection, paths=[path])
            for marker, again in ((".", False), ("x", True)):
                assert drawn(axes, marker) == [
                    (time, packet.psn)
                    for time, packet in packets
                    if Data in packet
                    and (packet.connection, packet.path) == (connection, path)
                    and bool(packet.flags.RETRANSMISSION) == again
                ]
            blocks = [
                (time, block)
                for time, packet in packets
                if Ack in packet and packet.connection == other
                for block in (packet, *packet[Ack].blocks)
            ]
            acknowledged = [(time, block.psn) for time, block in blocks if block.path == path]
            assert drawn(axes, "steps-post") == acknowledged != []
            assert not drawn(axes, "o")
    whole = metaroce.plot.time_sequence(seen)
    assert points(whole, ".") + points(whole, "x") == most and points(whole, "x") > 5
    assert whole.get_title().startswith(f"connection {first:#x}")
    # With a third connection nothing tells whose acknowledgments are whose.
    stranger = next(packet for _, packet in packets if Ack in packet)
    stranger.connection ^= 1
    stranger.crc = None
    mixed = metaroce.plot.time_sequence([*seen, (conversation.now, bytes(stranger))])
    assert points(mixed, ".") == points(whole, ".") and not drawn(mixed, "steps-post")


def test_what_is_no_capture_is_named_with_its_place() -> None:
    conversation = Conversation(seed=1, loss_percent=0, rounds=1)
    conversation.run()
    seen = conversation.wire.seen
    for wrong in ((1.5, b"x"), (5, "text"), (5, b""), b"bytes alone", 7, (1, 2, 3)):
        with pytest.raises((TypeError, ValueError), match=r"^\[2\]: an event, or a time in nanoseconds"):
            metaroce.plot.time_sequence([*seen[:2], wrong])  # type: ignore[arg-type]
    noise = metaroce.plot.events([(5, b"noise")])
    assert noise == [{"time": 5, "name": "datagram", "data": {"kind": "malformed", "error": "truncated"}}]
    with pytest.raises(ValueError, match="no data packets"):
        metaroce.plot.time_sequence([(5, b"noise")])
    with pytest.raises(ValueError, match="no data packets of host 3"):
        metaroce.plot.time_sequence(seen, host=3)


def test_loss_sweep_draws_medians() -> None:
    runs = {
        name: {
            loss: [
                metaroce.simulate(SCENARIO, seed, {"transport.paths": paths, "fault.0.effect.probability": loss})
                for seed in (1, 2, 3)
            ]
            for loss in (0.0, 0.05)
        }
        for name, paths in {"one": 1, "eight": 8}.items()
    }
    axes = metaroce.plot.loss_sweep(runs)
    assert [line.get_label() for line in axes.get_lines()] == ["one", "eight"]
    for line, by_loss in zip(axes.get_lines(), runs.values()):
        medians = [sorted(result.summary["goodput_gbps"] for result in by_loss[loss])[1] for loss in by_loss]
        assert ys(line) == medians and xs(line) == [0.0, 5.0]
    axes = metaroce.plot.loss_sweep({"one": {0.0: runs["one"][0.0][0]}}, figure=lambda result: 7.0, label="seven")
    assert ys(axes.get_lines()[0]) == [7.0] and axes.get_ylabel() == "seven"
    with pytest.raises(ValueError, match="no runs"):
        metaroce.plot.loss_sweep({})


def test_completion_times_end_at_the_share_that_was_delivered() -> None:
    whole = metaroce.simulate(SCENARIO, 1)
    cut = metaroce.simulate(SCENARIO, 1, {"run.limit": "75us"})
    axes = metaroce.plot.completion_times({"whole": whole, "cut": [cut]})
    first, second = axes.get_lines()
    assert max(ys(first)) == 1.0 and len(xs(first)) == 4
    assert max(xs(first)) == max(whole.flows["fct_ns"]) / 1e3
    assert "of 3 not delivered" in str(second.get_label())
    with pytest.raises(ValueError, match="no runs"):
        metaroce.plot.completion_times({})


def test_it_draws_where_it_is_told() -> None:
    figure, axes = plt.subplots()
    assert metaroce.plot.completion_times({"run": metaroce.simulate(SCENARIO, 1)}, axes=axes) is axes
    figure.canvas.draw()
