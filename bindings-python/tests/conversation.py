"""docs/conversation.md in Python: two small endpoints over a wire that loses and reorders."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Optional

from metaroce import (
    Closed,
    Completion,
    CompletionKind,
    Connected,
    Endpoint,
    Event,
    RemoteAddress,
    Status,
)

BASE = 0x1000
REGION = 8192
COUNTER = 8000
FIRST_PORT = 49152
MASK = (1 << 64) - 1


def pattern(side: int, offset: int) -> int:
    """The byte that a side has at first."""
    return (7 * offset + 101 * side + (offset >> 8)) & 0xFF


@dataclass
class Wire:
    """Loses, delays and so reorders; hashes what is sent."""

    state: int
    loss_percent: int
    hash: int = 0xCBF29CE484222325
    sent: int = 0
    lost: int = 0
    flights: list[tuple[int, int, int, int, bytes]] = field(default_factory=list)
    seen: list[tuple[int, bytes]] = field(default_factory=list)

    def random(self) -> int:
        """SplitMix64."""
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def digest(self, data: bytes) -> None:
        """FNV-1a."""
        for byte in data:
            self.hash = ((self.hash ^ byte) * 0x100000001B3) & MASK

    def send(self, now: int, to: int, port: int, data: bytes) -> None:
        self.digest(bytes([to]) + now.to_bytes(8, "little") + port.to_bytes(2, "little") + data)
        self.seen.append((now, data))
        number = self.sent
        self.sent += 1
        r = self.random()
        if r % 100 < self.loss_percent:
            self.lost += 1
        else:
            arrives = now + 5000 + (r >> 32) % 10000
            heapq.heappush(self.flights, (arrives, number, to, port, data))


class Side:
    """One of the two."""

    def __init__(self, side: int) -> None:
        self.endpoint = Endpoint(
            [address(side, 4793)],
            secret=bytes([side + 1]) * 32,
            profile="small",
            plane_mbps=1000,
            payload_bytes=512,
            entropies=256,
            listen=side == 1,
        )
        self.ram = bytearray(pattern(side, offset) for offset in range(REGION))
        self.ram[COUNTER : COUNTER + 8] = bytes(8)
        self.region = self.endpoint.register(self.ram, base=BASE)
        self.connection: Optional[int] = None
        self.closed = False


def address(side: int, port: int) -> str:
    return f"192.0.2.{1 + side}:{port}"


class Conversation:
    """The conversation; ``run`` carries it out."""

    def __init__(self, seed: int, loss_percent: int, rounds: int) -> None:
        self.wire = Wire(seed, loss_percent)
        self.sides = [Side(0), Side(1)]
        self.now = 1_000_000
        self.all = 6 * rounds
        self.posted = self.completed = self.received = 0

    def run(self) -> None:
        asking = self.sides[0]
        asking.connection = asking.endpoint.connect(self.now, [address(1, 4793)], paths=4)
        while not all(side.closed for side in self.sides):
            self.step()

    def step(self) -> None:
        before = -1
        while before != self.wire.sent:
            before = self.wire.sent
            self.events()
            for number, side in enumerate(self.sides):
                while (datagram := side.endpoint.poll_datagram(self.now)) is not None:
                    assert datagram.destination == address(1 - number, 4793)
                    self.wire.send(self.now, 1 - number, FIRST_PORT + datagram.entropy, datagram.data)
        if all(side.closed for side in self.sides):
            return
        times = [side.endpoint.poll_timeout() for side in self.sides]
        times.append(self.wire.flights[0][0] if self.wire.flights else None)
        self.now = max(self.now, min(time for time in times if time is not None))
        if self.wire.flights and self.wire.flights[0][0] <= self.now:
            _, _, to, port, data = heapq.heappop(self.wire.flights)
            # What is dropped (a duplicate, say) is the core's affair.
            self.sides[to].endpoint.handle_datagram(self.now, address(1 - to, port), data)
            return
        for side in self.sides:
            timeout = side.endpoint.poll_timeout()
            if timeout is not None and timeout <= self.now:
                side.endpoint.handle_timeout(self.now)

    def events(self) -> None:
        asking, answering = self.sides
        for event in taken(asking.endpoint):
            if isinstance(event, Connected):
                self.post()
            elif isinstance(event, Completion):
                assert event.status == Status.Success
                self.completed += 1
                self.post()
            elif isinstance(event, Closed):
                asking.closed = True
        for event in taken(answering.endpoint):
            if isinstance(event, Connected):
                answering.connection = event.connection
                self.post_receive(0)
                self.post_receive(1)
            elif isinstance(event, Completion):
                self.received_one(event)
            elif isinstance(event, Closed):
                answering.closed = True

    def received_one(self, completion: Completion) -> None:
        if completion.status == Status.Flushed and self.completed == self.all:
            return
        n = self.received // 2
        expected: tuple[CompletionKind, int, int]
        if self.received % 2 == 0:
            expected = (CompletionKind.Receive, n, 700)
        else:
            expected = (CompletionKind.ReceiveWriteImmediate, 0x1000 + n, 1500)
        assert completion.ok
        assert (completion.kind, completion.immediate, completion.length) == expected
        self.received += 1
        self.post_receive(self.received + 1)

    def post_receive(self, id: int) -> None:
        side = self.sides[1]
        assert side.connection is not None
        side.endpoint.post_receive(side.connection, side.region[7000:7800], id=id)

    def post(self) -> None:
        """The next operation, or the end."""
        endpoint, region = self.sides[0].endpoint, self.sides[0].region
        now, k, connection = self.now, self.posted, self.sides[0].connection
        assert connection is not None
        if k == self.all:
            endpoint.close(now, connection)
            return

        def remote(offset: int) -> RemoteAddress:
            return self.sides[1].region.remote(offset)

        n, kind = divmod(k, 6)
        if kind == 0:
            endpoint.post_write(now, connection, region[0:4000], remote(0), id=k)
        elif kind == 1:
            endpoint.post_send(now, connection, region[100:800], id=k, immediate=n)
        elif kind == 2:
            endpoint.post_read(now, connection, region[4000:7000], remote(500), id=k)
        elif kind == 3:
            endpoint.post_fetch_add(now, connection, region[7992:8000], remote(COUNTER), 5, id=k)
        elif kind == 4:
            endpoint.post_compare_swap(
                now, connection, region[7984:7992], remote(COUNTER), 6 * n + 5, 6 * n + 6, id=k
            )
        else:
            endpoint.post_write(
                now, connection, region[4000:5500], remote(5000), id=k, immediate=0x1000 + n
            )
        self.posted += 1


def taken(endpoint: Endpoint) -> Iterator[Event]:
    """All events that there are."""
    while (event := endpoint.poll_event()) is not None:
        yield event
