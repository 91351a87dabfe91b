"""Plots of simulations, and of endpoints that are stepped by hand (extra ``plot``: matplotlib). Each draws on ``axes``, or on new ones,
and returns them."""

from __future__ import annotations

import json
import operator
import os
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Callable, Optional, Union

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from ._metaroce import Datagram, packet_record
from ._simulate import Result

Captured = Iterable[tuple[int, Union[bytes, Datagram]]]
"""Datagrams as one place saw them, each with the time in nanoseconds."""
Trace = Union[str, "os.PathLike[str]", Iterable[Mapping[str, Any]], Captured]
Figure = Union[str, Callable[[Result], float]]


def events(trace: Trace) -> list[Mapping[str, Any]]:
    """The events of a trace (docs/trace.md): a file that :func:`metaroce.simulate` wrote, the events themselves, or datagrams with their
    times, of which each becomes an event ``datagram`` whose data is what the core reads in it."""
    if not isinstance(trace, (str, os.PathLike)):
        return [
            event if isinstance(event, Mapping) else _datagram(index, event) for index, event in enumerate(trace)
        ]
    with Path(trace).open(encoding="utf-8") as lines:
        header = json.loads(next(lines, "{}"))
        if header.get("metaroce_trace") != 1:
            raise ValueError(f"{trace} is not a trace of version 1")
        return [json.loads(line) for line in lines]


def _datagram(index: int, moment: Any) -> Mapping[str, Any]:
    try:
        time, data = moment
        time = operator.index(time)
        record = packet_record(data.data if isinstance(data, Datagram) else data)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"[{index}]: an event, or a time in nanoseconds and the bytes of a datagram, is expected: {error}"
        ) from None
    return {"time": time, "name": "datagram", "data": record}


def time_sequence(
    trace: Trace,
    *,
    host: Optional[int] = None,
    connection: Optional[int] = None,
    paths: Optional[Iterable[int]] = None,
    axes: Optional[Axes] = None,
) -> Axes:
    """Sequence numbers over time, path by path: packets that a host sent for the first time (dots), sent again (crosses), lost on the
    way (circles), and how far they were acknowledged (lines).

    Args:
        trace: a file or its events; or ``[(time_ns, datagram), ...]``, the bytes that an endpoint sent and received. These do not tell
            what was lost, and how far packets were acknowledged only if they are of a single connection.
        host: the sender, if it is a simulation's; if not given, that which sent most.
        connection: the id in its packets; if not given, that with most.
        paths: only these.
    """
    happened = events(trace)
    sent = [
        (event, event["data"])
        for event in happened
        if event["name"] in ("transport:packet_sent", "datagram") and event["data"].get("kind") == "data"
    ]
    if not sent:
        raise ValueError("the trace has no data packets (of a transport that has paths)")
    if host is None:
        host = Counter(data.get("source") for _, data in sent).most_common(1)[0][0]
    sent = [(event, data) for event, data in sent if data.get("source") == host]
    if connection is None and sent:
        connection = Counter(data["connection"] for _, data in sent).most_common(1)[0][0]
    sent = [(event, data) for event, data in sent if data["connection"] == connection]
    if not sent:
        raise ValueError(f"the trace has no data packets of host {host}, connection {connection}")
    peer, first = sent[0][1].get("destination"), sent[0][0]["time"]
    # A datagram has the id of whom it is for: those to the sender itself have another.
    own = {
        event["data"]["connection"]
        for event in happened
        if event["name"] == "datagram" and event["data"].get("blocks")
    } - {connection}

    def acknowledges(event: Mapping[str, Any]) -> bool:
        data = event["data"]
        if event["name"] == "datagram":
            return own == {data.get("connection")}
        to_host = event["name"] == "transport:packet_received" and event.get("host") == host
        return bool(to_host and data.get("source") == peer and event["time"] >= first)

    wanted = sorted({data["path"] for _, data in sent} if paths is None else set(paths))

    lost: dict[int, list[tuple[float, int]]] = {}
    acknowledged: dict[int, list[tuple[float, int]]] = {}
    for event in happened:
        time = event["time"] / 1e3
        if event["name"] == "network:dropped":
            packet = event["data"].get("packet", {})
            if packet.get("kind") == "data" and packet.get("connection") == connection:
                lost.setdefault(packet["path"], []).append((time, packet["psn"]))
        elif acknowledges(event):
            for block in event["data"].get("blocks", []):
                acknowledged.setdefault(block["path"], []).append((time, block["cumulative"]))

    axes = axes if axes is not None else plt.subplots()[1]
    colours = plt.get_cmap("tab10" if len(wanted) <= 10 else "viridis", max(len(wanted), 10))
    for index, path in enumerate(wanted):
        colour = colours(index)
        for again, marker, label in ((False, ".", f"path {path}"), (True, "x", "")):
            points = [
                (event["time"] / 1e3, data["psn"])
                for event, data in sent
                if data["path"] == path and bool(data.get("retransmission")) == again
            ]
            if points:
                axes.plot(*zip(*points), marker, color=colour, markersize=4, label=label or None)
        if path in acknowledged:
            axes.plot(
                *zip(*acknowledged[path]), drawstyle="steps-post", color=colour, linewidth=0.8, alpha=0.6
            )
        if path in lost:
            axes.plot(*zip(*lost[path]), "o", color=colour, markersize=9, fillstyle="none")
    axes.set_xlabel("time, us")
    axes.set_ylabel("sequence number on the path")
    if host is None:
        title = f"connection {connection:#x}: x sent again, - acknowledged"
    else:
        title = f"host {host} to {peer}: x sent again, o lost, - acknowledged"
    axes.set_title(title, fontsize="medium")
    if len(wanted) <= 10:
        axes.legend(fontsize="small")
    return axes


def loss_sweep(
    runs: Mapping[str, Mapping[float, Union[Result, Sequence[Result]]]],
    *,
    figure: Figure = "goodput_gbps",
    label: str = "goodput, Gbit/s",
    axes: Optional[Axes] = None,
) -> Axes:
    """A figure over the share of packets that are lost: the median of each one's runs, and their range.

    Args:
        runs: by name (of the transport, say) and by loss (0.01 is 1 %), one result or one for each seed.
        figure: a key of the summary, or what to make of a result.
        label: of the figure.
    """
    if not runs:
        raise ValueError("there are no runs to be drawn")
    axes = axes if axes is not None else plt.subplots()[1]
    for name, by_loss in runs.items():
        losses = sorted(by_loss)
        values = [sorted(_figure(result, figure) for result in _several(by_loss[loss])) for loss in losses]
        percent = [100 * loss for loss in losses]
        (line,) = axes.plot(percent, [statistics.median(all) for all in values], "o-", label=name)
        axes.fill_between(
            percent, [all[0] for all in values], [all[-1] for all in values], color=line.get_color(), alpha=0.2
        )
    axes.set_xlabel("packets lost, %")
    axes.set_ylabel(label)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend()
    return axes


def completion_times(
    runs: Mapping[str, Union[Result, Sequence[Result]]], *, axes: Optional[Axes] = None
) -> Axes:
    """The share of transfers that were delivered after so long, by name of the run (or of runs with several seeds). What was never
    delivered leaves its curve below 1."""
    if not runs:
        raise ValueError("there are no runs to be drawn")
    axes = axes if axes is not None else plt.subplots()[1]
    for name, results in runs.items():
        all = [time for result in _several(results) for time in result.flows["fct_ns"]]
        times = sorted(time / 1e3 for time in all if time is not None)
        shares = [(index + 1) / len(all) for index in range(len(times))]
        missing = len(all) - len(times)
        text = f"{name} ({missing} of {len(all)} not delivered)" if missing else name
        axes.step([times[0], *times] if times else [], [0.0, *shares] if times else [], where="post", label=text)
    axes.set_xlabel("completion time, us")
    axes.set_ylabel("share of transfers")
    axes.set_ylim(0, 1.02)
    axes.grid(alpha=0.3)
    axes.legend()
    return axes


def _several(results: Union[Result, Sequence[Result]]) -> Sequence[Result]:
    return [results] if isinstance(results, Result) else results


def _figure(result: Result, figure: Figure) -> float:
    return float(result.summary[figure] if isinstance(figure, str) else figure(result))
