"""MetaRoCE, RDMA over lossy Ethernet, in Python.

- :func:`simulate` runs a scenario in the deterministic simulator; its figures come as Arrow tables.
- :class:`Endpoint` is the core itself, stepped by hand with bytes and integer time.
- :class:`Nic` is the software NIC: it writes to, reads from and adds to another machine's memory over UDP.
- :mod:`metaroce.plot` draws (extra ``plot``), :mod:`metaroce.scapy` dissects (extra ``scapy``).
"""

from ._errors import (
    ConfigError,
    ConnectError,
    ConnectionClosed,
    Interrupted,
    MetaroceError,
    NicError,
    OperationError,
    PostError,
    RegionError,
    ScenarioError,
    TimedOut,
)
from ._metaroce import (
    Closed,
    Completion,
    CompletionKind,
    Connected,
    Connection,
    Datagram,
    Endpoint,
    LocalSlice,
    Nic,
    PlaneDown,
    PlaneUp,
    Region,
    RemoteAddress,
    Status,
    StreamFailed,
    Table,
)
from ._simulate import Progress, Result, simulate
from ._types import ConnectionSettings, EndpointSettings, Event

__all__ = [
    "Closed",
    "Completion",
    "CompletionKind",
    "ConfigError",
    "ConnectError",
    "Connected",
    "Connection",
    "ConnectionClosed",
    "ConnectionSettings",
    "Datagram",
    "Endpoint",
    "EndpointSettings",
    "Event",
    "Interrupted",
    "LocalSlice",
    "MetaroceError",
    "Nic",
    "NicError",
    "OperationError",
    "PlaneDown",
    "PlaneUp",
    "PostError",
    "Progress",
    "Region",
    "RegionError",
    "RemoteAddress",
    "Result",
    "ScenarioError",
    "Status",
    "StreamFailed",
    "Table",
    "TimedOut",
    "simulate",
]
