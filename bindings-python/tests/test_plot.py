"""Plots show the figures that they are made of."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import metaroce
import metaroce.plot
import numpy
import pytest
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

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
