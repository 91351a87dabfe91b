"""What people who are new to it do wrong: each mistake is an exception that names it, and nothing is lost or hangs."""

from __future__ import annotations

import gc
import mmap
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import metaroce
import numpy
import pytest
from test_nic import LONG, pair
from test_simulate import SMALL


def endpoint(**settings: Any) -> metaroce.Endpoint:
    return metaroce.Endpoint(["192.0.2.1:4793"], secret=bytes(32), **settings)


def released() -> memoryview:
    view = memoryview(bytearray(8))
    view.release()
    return view


def closed() -> mmap.mmap:
    pages = mmap.mmap(-1, 4096)
    pages.close()
    return pages


def read_only() -> numpy.typing.NDArray[Any]:
    array = numpy.zeros(4)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("memory", "error", "text"),
    [
        (read_only(), ValueError, "this ndarray is read-only"),
        (numpy.zeros(8)[::2], ValueError, "this ndarray is not contiguous"),
        (numpy.zeros((4, 4), order="F"), ValueError, "this ndarray is not contiguous, row by row"),
        # Whoever writes to it writes addresses of objects.
        (numpy.array([None, "text"], dtype=object), ValueError, "of Python's objects"),
        (numpy.zeros(2, dtype=[("a", "i4"), ("b", object)]), ValueError, "of Python's objects"),
        (numpy.zeros(4, dtype="datetime64[s]"), ValueError, "^memory: the buffer of this ndarray"),
        (closed(), ValueError, "^memory: the buffer of this mmap"),
        (released(), ValueError, "^memory: the buffer of this memoryview"),
        (10**18, MemoryError, f"^memory: there are no {10**18} bytes"),
        (10**30, MemoryError, f"^memory: there are no {10**30} bytes"),
        (-5, ValueError, "^memory: -5 bytes"),
        (1.5, TypeError, "^memory: .* not float"),
    ],
)
def test_memory_that_cannot_be_registered_says_why(memory: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        endpoint().register(memory)


@pytest.mark.parametrize("dtype", ["complex128", "float16", ">f8", "bool", "S4", [("a", "i4"), ("b", "f8")]])
def test_memory_of_any_plain_type_can_be_registered(dtype: Any) -> None:
    array = numpy.zeros(4, dtype=dtype)
    region = endpoint().register(array)
    region.memory[:] = b"\x01" * len(region)
    assert array.tobytes() == b"\x01" * array.nbytes


def test_places_outside_of_a_region_are_refused_at_once() -> None:
    region = endpoint().register(64)
    for wrong in (lambda: region.remote(65), lambda: region.slice(65), lambda: region.remote(10**18)):
        with pytest.raises(IndexError, match="is not inside a region of 64 bytes"):
            wrong()
    assert region.remote(64).address == region.base + 64 and region.slice(64).length == 0


def test_regions_that_are_gone_name_no_places() -> None:
    core = endpoint()
    region = core.register(64)
    core.deregister(region)
    uses: list[Callable[[], object]] = [lambda: region[:], region.slice, region.remote, lambda: region.memory, region.array]
    for use in uses:
        with pytest.raises(metaroce.RegionError, match="deregistered already"):
            use()


def test_a_slice_is_good_for_its_own_region_alone() -> None:
    """Its index is another region's, at another NIC or later: those bytes are not sent in its place."""
    with pair() as (nic, peer, ours, theirs):
        mine, other, window = nic.register(64), peer.register(64), peer.register(64)
        assert mine.index == other.index
        posts: list[Callable[[metaroce.LocalSlice], object]] = [
            lambda slice: ours.post_write(slice, window.remote()),
            lambda slice: ours.post_send(slice),
            lambda slice: ours.post_read(slice, window.remote()),
            lambda slice: ours.post_receive(slice),
            lambda slice: ours.post_fetch_add(slice, window.remote(), 1),
            lambda slice: ours.post_compare_swap(slice, window.remote(), 1, 2),
        ]
        stale = mine[:8]
        mine.deregister()
        again = nic.register(64)
        assert again.index == mine.index
        for post in posts:
            for wrong in (other[:8], stale):
                with pytest.raises(metaroce.PostError, match=f"local: region {mine.index} is another one here"):
                    post(wrong)
        assert not theirs.poll() and not ours.poll()
        # What is made by hand is taken as it is.
        assert metaroce.LocalSlice(again.index, 0, 64) == again[:]
        assert ours.write(metaroce.LocalSlice(again.index, 0, 64), window.remote(), timeout=LONG).ok
    one, two = endpoint(), endpoint()
    wrong, right = one.register(64)[:], two.register(64)[:]
    handle = two.connect(0, ["192.0.2.2:4793"])
    with pytest.raises(metaroce.PostError, match="is another one here"):
        two.post_send(0, handle, wrong, id=1)
    with pytest.raises(metaroce.PostError, match="not established"):
        two.post_send(0, handle, right, id=1)


@pytest.mark.parametrize(
    ("local", "error", "text"),
    [
        (numpy.zeros(2), TypeError, "is expected, not ndarray"),
        (bytearray(4), TypeError, "is expected, not bytearray"),
        (bytes(33), ValueError, "is expected, not 33 bytes"),
    ],
)
def test_what_cannot_be_sent_says_what_can(local: Any, error: type[Exception], text: str) -> None:
    core = endpoint()
    region = core.register(8)
    with pytest.raises(error, match=r"a slice of a region \(region\[:\]\), or bytes, 32 at most, " + text):
        core.post_write(0, 0, local, region.remote(), id=1)
    with pytest.raises(TypeError, match="not Region"):
        core.post_send(0, 0, region, id=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [5, None, [["127.0.0.1"]], [5]])
def test_addresses_are_texts(wrong: Any) -> None:
    uses: list[Callable[[], object]] = [
        lambda: metaroce.Endpoint(wrong, secret=bytes(32)),
        lambda: metaroce.Nic(wrong),
        lambda: endpoint().connect(0, wrong),
    ]
    for use in uses:
        with pytest.raises(TypeError, match="an address such as .* is expected, not"):
            use()
    one = metaroce.Endpoint("192.0.2.1:4793", secret=bytes(32))
    assert one.connect(0, "192.0.2.2:4793") == endpoint().connect(0, ["192.0.2.2:4793"])


@pytest.mark.parametrize("connections", [0, 65_536, 10**12, 2**63])
def test_tables_that_are_too_large_are_not_made(connections: int) -> None:
    with pytest.raises(metaroce.ConfigError, match="1 to 65,535 connections"):
        endpoint(connections=connections)
    with pytest.raises(metaroce.ConfigError, match="1 to 65,535 connections"):
        metaroce.Nic("127.0.0.1", connections=connections)


def test_ecn_has_two_bits() -> None:
    with pytest.raises(ValueError, match="ecn: .* not 7"):
        endpoint().handle_datagram(0, "192.0.2.2:4793", b"", ecn=7)


def test_any_time_is_taken() -> None:
    """Clocks may stand anywhere, and go back."""
    core = endpoint()
    core.connect(2**64 - 1, ["192.0.2.2:4793"])
    for now in (2**64 - 1, 0, 2**63, 1):
        core.handle_timeout(now)
        core.poll_datagram(now)
        core.handle_datagram(now, "192.0.2.2:4793", bytes(60))
        core.poll_event()


def test_other_threads_use_an_endpoint_while_memory_is_pinned() -> None:
    core = endpoint()

    class Length:
        def __index__(self) -> int:
            thread = threading.Thread(target=lambda: seen.append(core.statistics()))
            thread.start()
            thread.join()
            return 64

    seen: list[dict[str, Any]] = []
    assert len(core.register(Length())) == 64  # type: ignore[arg-type]
    assert len(seen) == 1


def test_waiting_for_what_never_ends_is_refused() -> None:
    with pair() as (nic, peer, ours, _):
        mine, window = nic.register(64), peer.register(64)
        with pytest.raises(ValueError, match="id: there is no operation 77"):
            ours.wait(77, timeout=None)
        posted = ours.post_write(mine[:], window.remote())
        ours.wait(posted, timeout=None)
        with pytest.raises(ValueError, match=f"no operation {posted} .* taken already"):
            ours.wait(posted, timeout=None)
        # One that was refused is none.
        with pytest.raises(metaroce.PostError):
            ours.post_write(mine[:], window.remote(), stream=999)
        with pytest.raises(ValueError, match=f"no operation {posted + 1}"):
            ours.wait(posted + 1, timeout=None)


def test_of_two_who_wait_for_one_operation_the_second_is_told() -> None:
    with pair() as (nic, peer, ours, theirs):
        receive = theirs.post_receive(peer.register(64)[:])
        ended: list[object] = []

        def wait() -> None:
            try:
                ended.append(theirs.wait(receive, timeout=None))
            except ValueError as error:
                ended.append(str(error))

        threads = [threading.Thread(target=wait) for _ in range(2)]
        for thread in threads:
            thread.start()
        ours.send(b"for one of them", timeout=LONG)
        for thread in threads:
            thread.join()
        completions = [end for end in ended if isinstance(end, metaroce.Completion)]
        assert len(completions) == 1 and completions[0].length == 15
        assert any("taken already" in str(end) for end in ended)


def test_a_receive_that_took_too_long_is_not_lost() -> None:
    with pair() as (nic, peer, ours, theirs):
        inbox = peer.register(64)
        with pytest.raises(metaroce.TimedOut) as caught:
            theirs.receive(inbox[:], timeout=0)
        assert caught.value.id is not None
        ours.send(b"late", timeout=LONG)
        assert theirs.wait(caught.value.id, timeout=LONG).length == 4
        assert bytes(inbox.memory[:4]) == b"late"
        with pytest.raises(metaroce.TimedOut) as caught:
            peer.accept(timeout=0)
        assert caught.value.id is None


def test_an_interrupted_wait_loses_nothing() -> None:
    with pair() as (nic, peer, ours, theirs):
        inbox = peer.register(64)
        receive = theirs.post_receive(inbox[:])
        waiting = threading.Event()

        def interrupt() -> None:
            waiting.wait()
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            waiting.set()
            theirs.wait(receive, timeout=None)
        thread.join()
        ours.send(b"after it", timeout=LONG)
        assert theirs.wait(receive, timeout=LONG).length == 8
        # One whose number nobody knows any more is found as well.
        theirs.post_receive(inbox[:])
        ours.send(b"another", timeout=LONG)
        while (got := theirs.poll()) is None:
            pass
        assert got.length == 7


def test_a_connection_keeps_its_nic() -> None:
    with metaroce.Nic("127.0.0.1") as peer:

        def connected() -> tuple[metaroce.Connection, metaroce.Region]:
            nic = metaroce.Nic("127.0.0.1")
            return nic.connect(peer.addresses, timeout=LONG), nic.register(64)

        ours, mine = connected()
        gc.collect()
        assert ours.write(mine[:], peer.register(64).remote(), timeout=LONG).ok


def test_a_nic_that_does_not_listen_accepts_nobody() -> None:
    with metaroce.Nic("127.0.0.1", listen=False) as nic:
        with pytest.raises(metaroce.ConfigError, match="listen=False"):
            nic.accept()


def test_a_closed_nic_says_so() -> None:
    with pair() as (nic, peer, ours, _):
        mine, window = nic.register(64), peer.register(64).remote()
        waiting = ours.post_receive(mine[:])
        slice = mine[:]
    uses: list[Callable[[], object]] = [
        lambda: nic.register(8),
        lambda: nic.connect(peer.addresses),
        nic.accept,
        nic.statistics,
        nic.poll_event,
        lambda: nic.payload_bytes,
    ]
    for use in uses:
        with pytest.raises(metaroce.NicError, match="shut down"):
            use()
    uses = [lambda: ours.post_write(slice, window), lambda: ours.post_receive(slice), lambda: ours.send(b"late")]
    for use in uses:
        with pytest.raises(metaroce.ConnectionClosed):
            use()
    with pytest.raises((metaroce.OperationError, metaroce.ConnectionClosed)):
        ours.wait(waiting, timeout=None)
    # What does not need it goes on.
    assert ours.close() == ours.wait_closed() == ours.state
    assert bytes(mine.memory) == bytes(64)
    mine.deregister()


def test_threads_share_a_nic() -> None:
    """Registering, connecting, writing, reading statistics and deregistering at once: every byte is in its place."""
    with metaroce.Nic("127.0.0.1") as peer, metaroce.Nic("127.0.0.1") as nic:
        failed: list[BaseException] = []

        def use(number: int) -> None:
            try:
                ours = nic.connect(peer.addresses, timeout=LONG, failure_timeout_ns=10**11)
                window = peer.register(4096)
                for turn in range(10):
                    mine = nic.register(bytearray([16 * number + turn]) * 4096)
                    assert ours.write(mine[:], window.remote(), timeout=LONG).ok
                    assert bytes(window.memory) == bytes(mine.memory)
                    assert nic.statistics()["datagrams_sent"] > 0
                    mine.deregister()
                ours.close(timeout=LONG)
            except BaseException as error:
                failed.append(error)
                raise

        threads = [threading.Thread(target=use, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failed


@pytest.mark.parametrize(
    ("settings", "key", "text"),
    [
        ({"fabric.shape.hosts": None}, "fabric.shape.hosts", "None cannot be in a scenario"),
        ({"fabric.shape": {"hosts": object()}}, "fabric.shape.hosts", "cannot be in a scenario"),
        ({"run.queues": ["p0:s0>h0", {1}]}, "run.queues.1", "cannot be in a scenario"),
        ({"fabric.shape.hosts": 2**70}, "fabric.shape.hosts", "does not fit"),
        ({"fabric.shape": {5: 6}}, "fabric.shape", "a key is a text, not 5"),
        ({5: 6}, "", "a key is a text, not 5"),
        ({"fabric.shap.hosts": 2}, "fabric.shap", "there is no key `shap`"),
    ],
)
def test_values_that_no_scenario_has_are_named(settings: Any, key: str, text: str) -> None:
    with pytest.raises(metaroce.ScenarioError, match=text) as caught:
        metaroce.simulate(SMALL, 1, settings)
    assert caught.value.key == key and str(caught.value).startswith(key or text) or "<text>" in str(caught.value)


def test_numpys_numbers_are_numbers() -> None:
    settings = {"fabric.shape.hosts": numpy.int64(5), "fabric.shape": {"kind": "star", "hosts": numpy.uint8(5)}}
    plain = metaroce.simulate(SMALL, numpy.int64(1), {"fabric.shape.hosts": 5})  # type: ignore[arg-type]
    for key, value in settings.items():
        assert metaroce.simulate(SMALL, 1, {key: value}).hash == plain.hash
    lossy = [{"links": {"tier": "host"}, "effect": {"kind": "loss", "probability": numpy.float32(0.5)}}]
    assert metaroce.simulate(SMALL, 1, {"fault": lossy}).hash != plain.hash


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"scenario": 5}, "^scenario: a path, a text or a dictionary is expected, not int"),
        ({"scenario": b"schema = 1"}, "^scenario: .* not bytes"),
        ({"settings": ["fabric.planes=2"]}, "^settings: a dictionary .* not list"),
        ({"settings": "fabric.planes=2"}, "^settings: a dictionary .* not str"),
        ({"progress": 5}, "^progress: .* not int"),
        ({"progress": None}, "^progress: .* not NoneType"),
        ({"trace": 5}, "^trace: a path is expected, not int"),
    ],
)
def test_arguments_of_a_simulation_are_named(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(TypeError, match=text):
        metaroce.simulate(**{"scenario": SMALL, **arguments})


def test_scenarios_that_are_no_texts(tmp_path: Path) -> None:
    latin = tmp_path / "latin.toml"
    latin.write_bytes(b'name = "\xff"')
    with pytest.raises(metaroce.ScenarioError, match="latin.toml: not UTF-8"):
        metaroce.simulate(latin)
    with pytest.raises(metaroce.ScenarioError, match="<text>"):
        metaroce.simulate("")
