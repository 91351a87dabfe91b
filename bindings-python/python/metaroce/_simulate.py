"""The simulator."""

from __future__ import annotations

import numbers
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, NamedTuple, Optional, Union

from . import _metaroce
from ._errors import Interrupted, ScenarioError
from ._metaroce import Table


class Progress(NamedTuple):
    """Where a simulation is."""

    done: int
    """Tasks of the workload that are over."""
    tasks: int
    """All tasks of the workload."""
    elapsed_ns: int
    """Simulated time since the workload began."""
    events: int
    """Events of the simulation so far."""


@dataclass(frozen=True)
class Result:
    """What came of a simulation.

    The tables have the columns that ``metaroce sim --out`` writes; any library of data frames takes them without a copy, by the
    Arrow PyCapsule interface: ``polars.DataFrame(result.flows)``, ``pyarrow.table(result.flows)``,
    ``pandas.DataFrame.from_arrow(result.flows)``. Times are in nanoseconds after the start of the workload.
    """

    summary: dict[str, Any]
    """The run as a whole, as ``metaroce sim --json`` prints it."""
    flows: Table
    """Every transfer."""
    groups: Table
    """Every collective, step or request."""
    ports: Table
    """Every port, with what it has seen."""
    series: Optional[Table]
    """The time series, if the scenario asks for one (``run.series``)."""

    @property
    def hash(self) -> str:
        """Of every hop: equal for equal runs, on every platform."""
        return str(self.summary["hash"])

    @property
    def end(self) -> str:
        """``complete``, ``not-ready``, ``time-limit``, ``stuck`` or ``stopped``."""
        return str(self.summary["end"])

    def __repr__(self) -> str:
        summary = self.summary
        return (
            f"Result({summary['name']!r}, {summary['transport']}, seed {summary['seed']}: {self.end} after "
            f"{summary['elapsed_ns']} ns, {len(self.flows)} flows, hash {self.hash})"
        )


Scenario = Union[str, "os.PathLike[str]", Mapping[str, Any]]


def simulate(
    scenario: Scenario,
    seed: Optional[int] = None,
    settings: Optional[Mapping[str, Any]] = None,
    progress: Union[bool, Callable[[Progress], object]] = False,
    *,
    trace: Union[str, os.PathLike[str], None] = None,
) -> Result:
    """Runs a scenario in the deterministic simulator.

    Args:
        scenario: the path of a TOML file, its text (which has a line break), or a dictionary of the same form.
        seed: what is left to chance follows from it; if not given, ``run.seed`` of the scenario.
        settings: keys to be set besides, such as ``{"fabric.planes": 4, "workload.size_bytes": "1MiB"}``.
        progress: show a progress bar, or call this now and then.
        trace: write what happens to packets to this file (docs/trace.md).

    Raises:
        ScenarioError: with file, line and key of what is wrong.
        Interrupted: a KeyboardInterrupt, with the result up to then.
        OSError: a file cannot be read or written.
    """
    name, text, folder = _source(scenario)
    if settings is not None and not isinstance(settings, Mapping):
        raise TypeError(f"settings: a dictionary of keys and values is expected, not {type(settings).__name__}")
    pairs = list(_plain(settings or {}, "").items())
    path = None if trace is None else Path(_path("trace", trace, "a path"))
    if not isinstance(progress, bool) and not callable(progress):
        raise TypeError(f"progress: True, False or a function is expected, not {type(progress).__name__}")
    if progress is True:
        with _Bar() as bar:
            parts = _metaroce.simulate(name, text, folder, pairs, seed, bar.show, path)
    elif progress is False:
        parts = _metaroce.simulate(name, text, folder, pairs, seed, None, path)
    else:
        call = progress
        parts = _metaroce.simulate(
            name, text, folder, pairs, seed, lambda *moment: call(Progress(*moment)), path
        )
    summary, tables, stopped = parts
    result = Result(summary, tables["flows"], tables["groups"], tables["ports"], tables.get("series"))
    if isinstance(stopped, KeyboardInterrupt):
        raise Interrupted(result) from stopped
    if stopped is not None:
        raise stopped
    return result


def _source(scenario: Scenario) -> tuple[str, str, Path]:
    """The name, text and folder of a scenario."""
    if isinstance(scenario, Mapping):
        return "<dict>", _metaroce.to_toml(_plain(scenario, "")), Path()
    if isinstance(scenario, str) and ("\n" in scenario or not scenario):
        return "<text>", scenario, Path()
    path = Path(_path("scenario", scenario, "a path, a text or a dictionary"))
    try:
        return str(path), path.read_text(encoding="utf-8"), path.parent
    except UnicodeDecodeError as error:
        raise ScenarioError(f"{path}: not UTF-8: {error}") from None


def _path(name: str, path: Any, expected: str) -> str:
    try:
        place = os.fspath(path)
    except TypeError:
        place = None
    if not isinstance(place, str):
        raise TypeError(f"{name}: {expected} is expected, not {type(path).__name__}")
    return place


def _plain(value: Any, key: str) -> Any:
    """A value of a scenario without classes of Python or NumPy: what cannot be one is named with its key."""
    if isinstance(value, (str, bool)):
        return value
    if isinstance(value, numbers.Integral):
        number = int(value)
        if not -(2**63) <= number < 2**63:
            raise ScenarioError(f"{key}: {number} does not fit in 64 bits", key=key)
        return number
    if isinstance(value, numbers.Real):
        return float(value)
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                raise ScenarioError(f"{key}: a key is a text, not {name!r}".lstrip(": "), key=key)
        return {name: _plain(item, f"{key}.{name}".lstrip(".")) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, f"{key}.{index}") for index, item in enumerate(value)]
    raise ScenarioError(f"{key}: {value!r} cannot be in a scenario ({type(value).__name__})", key=key)


class _Bar:
    """A progress bar over the tasks of a workload."""

    def __init__(self) -> None:
        from tqdm.auto import tqdm

        self._bar = tqdm(unit=" tasks", dynamic_ncols=True)

    def show(self, done: int, tasks: int, elapsed_ns: int, events: int) -> None:
        bar = self._bar
        bar.total = tasks
        bar.n = done
        elapsed = float(bar.format_dict["elapsed"])
        speed = events / elapsed if elapsed > 0 else 0.0
        bar.set_postfix_str(f"{elapsed_ns / 1e3:.1f} us simulated, {speed / 1e6:.2f} M events/s")

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.close()
