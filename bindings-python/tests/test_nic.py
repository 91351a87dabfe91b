"""The software NIC, over UDP on loopback. Ends wait for each other; nothing depends on how long anything takes."""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import metaroce
import numpy
import pytest

#: For what must happen, however slow the machine is.
LONG = 120.0


@contextmanager
def pair(
    faults: str | None = None, **settings: object
) -> Iterator[tuple[metaroce.Nic, metaroce.Nic, metaroce.Connection, metaroce.Connection]]:
    """Two NICs and both ends of a connection of theirs."""
    with metaroce.Nic("127.0.0.1") as peer, metaroce.Nic("127.0.0.1", faults=faults) as nic:
        ours = nic.connect(peer.addresses, timeout=LONG, failure_timeout_ns=10**11, **settings)  # type: ignore[arg-type]
        yield nic, peer, ours, peer.accept(timeout=LONG)


@pytest.mark.parametrize("faults", [None, "loss=5%,reorder=5%,duplicate=5%,seed=1"])
def test_every_operation_moves_the_right_bytes(faults: str | None) -> None:
    random = numpy.random.default_rng(1)
    source = random.integers(0, 256, 1_000_000, dtype=numpy.uint8)
    target = numpy.zeros_like(source)
    back = numpy.zeros_like(source)
    with pair(faults) as (nic, peer, ours, theirs):
        mine, window, returned = nic.register(source), peer.register(target), nic.register(back)
        done = ours.write(mine[:], window.remote(), timeout=LONG)
        assert done.ok and done.length == 1_000_000
        assert (target == source).all()
        ours.read(returned[:500_000], window.remote(500_000), timeout=LONG)
        assert (back[:500_000] == source[500_000:]).all() and not back[500_000:].any()

        message = peer.register(1000)
        receive = theirs.post_receive(message[:])
        ours.send(b"in the work request itself", immediate=7, timeout=LONG)
        got = theirs.wait(receive, timeout=LONG)
        assert (got.kind, got.length, got.immediate) == (metaroce.CompletionKind.Receive, 26, 7)
        assert bytes(message.memory[:26]) == b"in the work request itself"

        words = peer.register(numpy.array([40, 0], dtype=numpy.uint64))
        old = nic.register(8)
        ours.fetch_add(old[:], words.remote(), 2, timeout=LONG)
        assert old.array(numpy.uint64)[0] == 40 and words.array(numpy.uint64)[0] == 42
        ours.compare_swap(old[:], words.remote(), 42, 6, timeout=LONG)
        assert old.array(numpy.uint64)[0] == 42 and words.array(numpy.uint64)[0] == 6
        ours.compare_swap(old[:], words.remote(), 42, 7, timeout=LONG)
        assert old.array(numpy.uint64)[0] == 6 and words.array(numpy.uint64)[0] == 6

        receive = theirs.post_receive(message[:])
        ours.write(mine[:100], window.remote(), immediate=9, timeout=LONG)
        got = theirs.wait(receive, timeout=LONG)
        assert got.kind == metaroce.CompletionKind.ReceiveWriteImmediate and got.immediate == 9
        if faults:
            assert nic.statistics()["faults_outgoing"]["lost"] > 0
        figures = ours.statistics()
        assert figures is not None and figures["bytes_sent"] >= 1_000_000
        assert ours.close(timeout=LONG) == "local-close"
        assert theirs.wait_closed(timeout=LONG) == "peer-close"
        assert theirs.state == "peer-close"


def test_operations_may_be_waited_for_in_any_order_and_from_several_threads() -> None:
    with pair() as (nic, peer, ours, _):
        mine, window = nic.register(4096), peer.register(4096)
        posted = [ours.post_write(mine[k : k + 64], window.remote(k)) for k in range(0, 1024, 64)]
        for number in reversed(posted):
            assert ours.wait(number, timeout=LONG).id == number
        assert ours.poll() is None

        def write(k: int) -> None:
            for _ in range(20):
                ours.write(mine[k : k + 64], window.remote(k), stream=k // 64, timeout=LONG)

        threads = [threading.Thread(target=write, args=(k,)) for k in range(0, 256, 64)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def test_failures_say_what_failed() -> None:
    with pair() as (nic, peer, ours, _):
        mine, window = nic.register(64), peer.register(64, "R")
        with pytest.raises(metaroce.OperationError, match="Write 1 ended with RemoteAccessDenied") as caught:
            ours.write(mine[:], window.remote(), timeout=LONG)
        assert caught.value.status == metaroce.Status.RemoteAccessDenied
        assert caught.value.completion.connection == ours.handle
        with pytest.raises(metaroce.PostError, match="the stream has failed"):
            ours.write(mine[:], window.remote(), timeout=LONG)
        with pytest.raises(metaroce.OperationError, match="RemoteInvalidKey"):
            ours.read(mine[:], metaroce.RemoteAddress(0, 1), stream=1, timeout=LONG)
        slice = mine[:]
        mine.deregister()
        with pytest.raises(metaroce.PostError, match="no region is registered"):
            ours.write(slice, window.remote(), stream=2)
        with pytest.raises(metaroce.RegionError, match="already"):
            mine.deregister()


def test_timeouts_are_exceptions_and_what_is_posted_can_be_waited_for_again() -> None:
    with pair() as (nic, peer, ours, theirs):
        inbox = peer.register(64)
        receive = theirs.post_receive(inbox[:])
        with pytest.raises(metaroce.TimedOut, match="longer than 0.01 s") as caught:
            theirs.wait(receive, timeout=0.01)
        assert isinstance(caught.value, TimeoutError)
        ours.send(b"late", timeout=LONG)
        assert theirs.wait(receive, timeout=LONG).length == 4
        with pytest.raises(metaroce.TimedOut, match="no peer connected within 0.01 s"):
            peer.accept(timeout=0.01)
        with pytest.raises(metaroce.TimedOut):
            ours.wait_closed(timeout=0)
        with pytest.raises(ValueError, match="timeout"):
            theirs.wait(receive, timeout=-1)


def test_a_peer_that_is_not_there() -> None:
    with metaroce.Nic("127.0.0.1") as gone:
        address = gone.addresses
    with metaroce.Nic("127.0.0.1") as nic:
        with pytest.raises(metaroce.TimedOut, match="connecting took longer than 0.05 s"):
            nic.connect(address, timeout=0.05)
        with pytest.raises(metaroce.ConnectionClosed, match="no path to the peer answers") as caught:
            nic.connect(address, timeout=LONG, failure_timeout_ns=50_000_000)
        assert caught.value.reason == "unreachable" and isinstance(caught.value, ConnectionError)
    with metaroce.Nic("127.0.0.1", listen=False) as deaf, metaroce.Nic("127.0.0.1") as nic:
        with pytest.raises(metaroce.ConnectionClosed, match="refused"):
            nic.connect(deaf.addresses, timeout=LONG)


def test_a_peer_that_vanishes_ends_operations() -> None:
    nic = metaroce.Nic("127.0.0.1")
    with metaroce.Nic("127.0.0.1") as peer:
        ours = nic.connect(peer.addresses, timeout=LONG)
        theirs = peer.accept(timeout=LONG)
        pending = theirs.post_receive(peer.register(64)[:])
        nic.close(timeout=0)
        with pytest.raises((metaroce.OperationError, metaroce.ConnectionClosed)):
            theirs.wait(pending, timeout=LONG)
    with pytest.raises((metaroce.NicError, metaroce.ConnectionClosed)):
        ours.send(b"nobody there")
    with pytest.raises(metaroce.NicError, match="shut down"):
        nic.register(64)
    assert nic.closed and "closed" in repr(nic)
    assert nic.close()


@pytest.mark.parametrize(
    ("planes", "settings", "text"),
    [
        ("0.0.0.0", {}, "not the address of one interface"),
        ("nowhere", {}, "is not an IP address"),
        ([], {}, "1 to 8 planes"),
        ("127.0.0.1", {"faults": "los=1%"}, "unknown fault"),
        ("127.0.0.1", {"payload_bytes": 1}, "payload_bytes"),
        ("127.0.0.1", {"accept": {"run": 0}}, "run"),
    ],
)
def test_wrong_settings_are_named(planes: object, settings: dict[str, object], text: str) -> None:
    with pytest.raises(metaroce.ConfigError, match=text):
        metaroce.Nic(planes, **settings)  # type: ignore[arg-type]


def test_a_port_that_is_taken_is_an_oserror() -> None:
    with metaroce.Nic("127.0.0.1") as nic:
        with pytest.raises(OSError, match="cannot receive on"):
            metaroce.Nic(nic.addresses)


def test_several_planes() -> None:
    with metaroce.Nic(["127.0.0.1", "127.0.0.1"]) as nic, metaroce.Nic(["127.0.0.1"] * 2) as peer:
        assert len(peer.addresses) == 2
        ours = nic.connect(peer.addresses, timeout=LONG, paths=8, service=5)
        assert peer.accept(timeout=LONG).service == 5
        ours.write(nic.register(64)[:], peer.register(64).remote(), timeout=LONG)
        planes = {(path or {})["plane"] for path in map(ours.path_statistics, range(8))}
        assert planes == {0, 1}


def test_memory_lives_as_long_as_a_peer_may_write_to_it() -> None:
    with pair() as (nic, peer, ours, _):
        window = peer.register(1 << 20).remote()
        gc.collect()
        source = nic.register(bytearray(b"x" * (1 << 20)))
        ours.write(source[:], window, timeout=LONG)
        read = nic.register(1 << 20)
        ours.read(read[:], window, timeout=LONG)
        assert bytes(read.memory) == b"x" * (1 << 20)
    # After the NIC the memory is still there.
    assert bytes(read.memory[:4]) == b"xxxx"


def test_signals_end_waits() -> None:
    with metaroce.Nic("127.0.0.1") as nic:
        started = threading.Event()

        def interrupt() -> None:
            started.wait()
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            started.set()
            nic.accept()
        thread.join()
    assert nic.closed


def test_an_exception_closes_the_nic_at_once() -> None:
    with pytest.raises(RuntimeError, match="mine"):
        with metaroce.Nic("127.0.0.1") as nic:
            raise RuntimeError("mine")
    assert nic.closed
