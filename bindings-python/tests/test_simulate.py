"""The simulator. `METAROCE_SCENARIOS` is the project's folder of scenarios, `METAROCE_COMMAND` its command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import metaroce
import pandas
import polars
import pyarrow
import pytest

SCENARIOS = Path(os.environ["METAROCE_SCENARIOS"])
COMMAND = os.environ["METAROCE_COMMAND"]

SMALL = """
schema = 1
name = "small"
fabric.shape = { kind = "star", hosts = 4 }
transport = { kind = "metaroce", paths = 8 }
workload = { kind = "incast", size_bytes = "64KiB" }
"""

#: Long enough to be interrupted.
LONG = {
    "schema": 1,
    "fabric": {"shape": {"kind": "star", "hosts": 16}},
    "transport": {"kind": "metaroce", "paths": 8},
    "workload": {"kind": "incast", "size_bytes": "1GiB"},
    "run": {"limit": "100s"},
}


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("collectives", {"workload.size_bytes": "256KiB", "workload.repeat": 1}),
        ("incast", {"workload.senders": 15}),
        ("loss", {"workload.size_bytes": "64KiB", "fabric.shape.leaves": 2, "transport.kind": "rocev2"}),
    ],
)
def test_the_hash_is_that_of_the_command(name: str, settings: dict[str, object]) -> None:
    path = SCENARIOS / f"{name}.toml"
    command = [COMMAND, "sim", str(path), "--seed", "1", "--json"]
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    native = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    result = metaroce.simulate(path, 1, settings)
    assert result.hash == native["hash"]
    assert json.loads(json.dumps(result.summary)) == native
    assert result.end == "complete" and result.summary["conserved"]


def test_text_dictionary_and_file_are_the_same(tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    dictionary = {
        "schema": 1,
        "name": "small",
        "fabric": {"shape": {"kind": "star", "hosts": 4}},
        "transport": {"kind": "metaroce", "paths": 8},
        "workload": {"kind": "incast", "size_bytes": 65536},
    }
    results = [metaroce.simulate(scenario, 3) for scenario in (SMALL, str(path), path, dictionary)]
    assert len({result.hash for result in results}) == 1
    assert metaroce.simulate(SMALL, 4).hash != results[0].hash
    assert metaroce.simulate(SMALL, 3, {"run.series": "1us"}).hash == results[0].hash


def test_tables_go_to_every_library_without_copies() -> None:
    result = metaroce.simulate(SMALL, 1, {"run.series": "10us", "run.queues": ["p0:s0>h0"]})
    arrow = pyarrow.table(result.flows)
    assert arrow.num_rows == len(result.flows) == 3
    assert arrow.column_names == result.flows.column_names
    assert arrow["bytes"].to_pylist() == result.flows["bytes"] == [65536] * 3
    # The same memory, however often it is asked for.
    again = pyarrow.table(result.flows)
    for name in ("bytes", "fct_ns", "slowdown"):
        one, other = (table[name].chunk(0).buffers()[1].address for table in (arrow, again))
        assert one == other, name
    frame = polars.DataFrame(result.flows)
    assert frame["fct_ns"].to_list() == result.flows["fct_ns"]
    data = pandas.DataFrame.from_arrow(result.ports)  # type: ignore[attr-defined]
    assert list(data["name"]) == result.ports["name"] and data["sent"].sum() > 0
    assert result.series is not None
    series = polars.DataFrame(result.series)
    assert series["queue_bytes p0:s0>h0"].max() is not None
    assert polars.DataFrame(result.groups)["done"].to_list() == [3]
    with pytest.raises(KeyError, match="flows has the columns"):
        result.flows["speed"]
    schema = pyarrow.schema(result.flows)
    assert schema.field("failed").type == pyarrow.bool_()


def test_a_table_outlives_its_result() -> None:
    table = pyarrow.table(metaroce.simulate(SMALL, 1).flows)
    assert table["bytes"].to_pylist() == [65536] * 3


@pytest.mark.parametrize(
    ("text", "settings", "line", "key"),
    [
        (SMALL.replace("hosts = 4", "hosts = true"), {}, 4, "fabric.shape.hosts"),
        (SMALL.replace("paths", "pats"), {}, 5, "transport.pats"),
        (SMALL.replace("64KiB", "64 apples"), {}, 6, "workload.size_bytes"),
        (SMALL.replace("schema = 1", "schema = 7"), {}, 2, "schema"),
        (SMALL + "x = [", {}, 7, ""),
        (SMALL, {"fabric.shape.hosts": "many"}, None, "fabric.shape.hosts"),
    ],
)
def test_errors_name_file_line_and_key(
    tmp_path: Path, text: str, settings: dict[str, object], line: int | None, key: str
) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(text)
    with pytest.raises(metaroce.ScenarioError) as caught:
        metaroce.simulate(path, 1, settings)
    error = caught.value
    assert isinstance(error, ValueError)
    assert (error.line, error.key) == (line, key), str(error)
    assert error.file == (None if line is None else str(path))
    assert error.place in str(error) and key in str(error)


def test_what_is_not_there_is_an_oserror() -> None:
    with pytest.raises(FileNotFoundError):
        metaroce.simulate("there-is-no-such-file.toml")
    with pytest.raises(metaroce.ScenarioError, match="cannot write /nowhere/trace"):
        metaroce.simulate(SMALL, trace="/nowhere/trace")
    with pytest.raises(ValueError, match="cannot be in a scenario"):
        metaroce.simulate({"schema": object()})


def test_progress_is_shown_and_what_it_raises_ends_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    metaroce.simulate(SMALL, progress=True)
    assert "tasks" in capsys.readouterr().err
    seen: list[metaroce.Progress] = []
    metaroce.simulate(SMALL, progress=seen.append)
    assert seen[-1].tasks == 3 and seen[-1].elapsed_ns > 0 and seen[-1].events > 0

    def stop(moment: metaroce.Progress) -> None:
        raise RuntimeError(f"{moment.done} of {moment.tasks} are enough")

    with pytest.raises(RuntimeError, match="0 of 15 are enough"):
        metaroce.simulate(LONG, progress=stop)


def test_keyboard_interrupt_ends_a_run_with_what_there_is() -> None:
    def interrupt(_: metaroce.Progress) -> None:
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(metaroce.Interrupted) as caught:
        metaroce.simulate(LONG, progress=interrupt)
    assert isinstance(caught.value, KeyboardInterrupt)
    assert caught.value.result.end == "stopped"
    assert len(caught.value.result.flows) == 15


def test_a_signal_from_outside_ends_a_run_that_shows_nothing() -> None:
    """It comes while the interpreter waits for the simulator."""
    begun = threading.Event()

    def interrupt() -> None:
        begun.wait()
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(metaroce.Interrupted) as caught:
        metaroce.simulate(LONG, progress=lambda _: begun.set())
    thread.join()
    assert caught.value.result.end == "stopped"


def test_simulations_run_side_by_side() -> None:
    with ThreadPoolExecutor(4) as pool:
        hashes = list(pool.map(lambda seed: metaroce.simulate(SMALL, seed).hash, [1, 2, 1, 2]))
    assert hashes[:2] == hashes[2:] and hashes[0] != hashes[1]


def test_other_threads_run_meanwhile() -> None:
    ready, enough = threading.Event(), threading.Event()

    def count() -> None:
        ready.wait()
        for _ in range(1000):
            pass
        enough.set()

    class Enough(Exception):
        pass

    def look(_: metaroce.Progress) -> None:
        ready.set()
        if enough.is_set():
            raise Enough

    thread = threading.Thread(target=count)
    thread.start()
    with pytest.raises(Enough):
        metaroce.simulate(LONG, progress=look)
    thread.join()


def test_a_trace_is_written(tmp_path: Path) -> None:
    path = tmp_path / "trace.ndjson"
    traced = metaroce.simulate(SMALL, 1, trace=path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines[0]["metaroce_trace"] == 1 and lines[0]["transport"] == "metaroce"
    assert any(line.get("name") == "transport:packet_sent" for line in lines)
    assert traced.hash == metaroce.simulate(SMALL, 1).hash


def test_long_links_have_stack_enough() -> None:
    result = metaroce.simulate(SCENARIOS / "scale-across.toml", 1, {"run.limit": "1ms"})
    assert result.summary["events"] > 0
