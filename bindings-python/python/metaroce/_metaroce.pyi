"""The native half of the package."""

from pathlib import Path
from typing import Any, Callable, ClassVar, Optional, Union, final

import numpy
import numpy.typing
from typing_extensions import Buffer, Unpack

from ._types import ConnectionSettings, EndpointSettings, Event

__all__ = [
    "Closed",
    "Completion",
    "CompletionKind",
    "Connected",
    "Connection",
    "Datagram",
    "Endpoint",
    "LocalSlice",
    "Nic",
    "PlaneDown",
    "PlaneUp",
    "Region",
    "RemoteAddress",
    "Status",
    "StreamFailed",
    "Table",
    "crc32c",
    "packet_record",
    "simulate",
    "to_toml",
]

# `Region` has a method of this name.
_Slice = slice
_Memory = Union[int, Buffer, numpy.typing.NDArray[Any]]

@final
class LocalSlice:
    def __new__(cls, region: int, offset: int, length: int) -> LocalSlice: ...
    @property
    def region(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def length(self) -> int: ...
    def __len__(self) -> int: ...
    def __hash__(self) -> int: ...

@final
class RemoteAddress:
    def __new__(cls, address: int, key: int) -> RemoteAddress: ...
    @property
    def address(self) -> int: ...
    @property
    def key(self) -> int: ...
    def __add__(self, offset: int, /) -> RemoteAddress: ...
    def __radd__(self, offset: int, /) -> RemoteAddress: ...
    def __hash__(self) -> int: ...

@final
class Status:
    Success: ClassVar[Status]
    LocalAccess: ClassVar[Status]
    RemoteInvalidKey: ClassVar[Status]
    RemoteOutOfBounds: ClassVar[Status]
    RemoteAccessDenied: ClassVar[Status]
    LengthExceedsBuffer: ClassVar[Status]
    ReceiverNotReady: ClassVar[Status]
    RemoteInvalidRequest: ClassVar[Status]
    RemoteMemoryFault: ClassVar[Status]
    Flushed: ClassVar[Status]
    ConnectionLost: ClassVar[Status]
    @property
    def name(self) -> str: ...
    def __int__(self) -> int: ...
    def __hash__(self) -> int: ...

@final
class CompletionKind:
    Write: ClassVar[CompletionKind]
    Send: ClassVar[CompletionKind]
    Read: ClassVar[CompletionKind]
    FetchAdd: ClassVar[CompletionKind]
    CompareSwap: ClassVar[CompletionKind]
    Receive: ClassVar[CompletionKind]
    ReceiveWriteImmediate: ClassVar[CompletionKind]
    @property
    def name(self) -> str: ...
    def __int__(self) -> int: ...
    def __hash__(self) -> int: ...

@final
class Completion:
    @property
    def connection(self) -> int: ...
    @property
    def stream(self) -> int: ...
    @property
    def id(self) -> int: ...
    @property
    def kind(self) -> CompletionKind: ...
    @property
    def status(self) -> Status: ...
    @property
    def length(self) -> int: ...
    @property
    def immediate(self) -> Optional[int]: ...
    @property
    def solicited(self) -> bool: ...
    @property
    def ok(self) -> bool: ...

@final
class Connected:
    @property
    def connection(self) -> int: ...
    @property
    def incoming(self) -> bool: ...
    @property
    def service(self) -> int: ...

@final
class Closed:
    @property
    def connection(self) -> int: ...
    @property
    def reason(self) -> str: ...

@final
class StreamFailed:
    @property
    def connection(self) -> int: ...
    @property
    def stream(self) -> int: ...
    @property
    def status(self) -> Status: ...
    @property
    def by_peer(self) -> bool: ...

@final
class PlaneDown:
    @property
    def connection(self) -> int: ...
    @property
    def plane(self) -> int: ...

@final
class PlaneUp:
    @property
    def connection(self) -> int: ...
    @property
    def plane(self) -> int: ...

@final
class Region:
    @property
    def index(self) -> int: ...
    @property
    def key(self) -> int: ...
    @property
    def base(self) -> int: ...
    @property
    def memory(self) -> memoryview: ...
    def array(
        self, dtype: Optional[numpy.typing.DTypeLike] = None
    ) -> numpy.typing.NDArray[Any]: ...
    def slice(self, offset: int = 0, length: Optional[int] = None) -> LocalSlice: ...
    def remote(self, offset: int = 0) -> RemoteAddress: ...
    def deregister(self) -> None: ...
    def __getitem__(self, range: _Slice, /) -> LocalSlice: ...
    def __len__(self) -> int: ...

@final
class Datagram:
    @property
    def data(self) -> bytes: ...
    @property
    def destination(self) -> str: ...
    @property
    def plane(self) -> int: ...
    @property
    def entropy(self) -> int: ...
    @property
    def ecn(self) -> int: ...
    @property
    def control(self) -> bool: ...
    @property
    def connection(self) -> Optional[int]: ...

@final
class Endpoint:
    def __new__(
        cls,
        addresses: Union[str, list[str]],
        *,
        secret: bytes,
        profile: str = "large",
        connections: Optional[int] = None,
        accept: Optional[ConnectionSettings] = None,
        **settings: Unpack[EndpointSettings],
    ) -> Endpoint: ...
    def register(
        self, memory: _Memory, access: str = "rwRWA", base: Optional[int] = None
    ) -> Region: ...
    def deregister(self, region: Region) -> None: ...
    def connect(
        self, now_ns: int, peer: Union[str, list[str]], **settings: Unpack[ConnectionSettings]
    ) -> int: ...
    def handle_datagram(
        self,
        now_ns: int,
        source: str,
        data: bytes,
        *,
        plane: int = 0,
        ecn: int = 2,
        checksum_verified: bool = False,
    ) -> Optional[str]: ...
    def poll_datagram(self, now_ns: int) -> Optional[Datagram]: ...
    def poll_timeout(self) -> Optional[int]: ...
    def handle_timeout(self, now_ns: int) -> None: ...
    def poll_event(self) -> Optional[Event]: ...
    def post_write(
        self,
        now_ns: int,
        connection: int,
        local: Union[LocalSlice, bytes],
        remote: RemoteAddress,
        *,
        id: int,
        stream: int = 0,
        immediate: Optional[int] = None,
        signaled: bool = True,
        solicited: bool = False,
        fence: bool = False,
    ) -> None: ...
    def post_send(
        self,
        now_ns: int,
        connection: int,
        local: Union[LocalSlice, bytes],
        *,
        id: int,
        stream: int = 0,
        immediate: Optional[int] = None,
        signaled: bool = True,
        solicited: bool = False,
        fence: bool = False,
    ) -> None: ...
    def post_read(
        self,
        now_ns: int,
        connection: int,
        local: LocalSlice,
        remote: RemoteAddress,
        *,
        id: int,
        stream: int = 0,
        signaled: bool = True,
        fence: bool = False,
    ) -> None: ...
    def post_fetch_add(
        self,
        now_ns: int,
        connection: int,
        local: LocalSlice,
        remote: RemoteAddress,
        add: int,
        *,
        id: int,
        stream: int = 0,
        signaled: bool = True,
        fence: bool = False,
    ) -> None: ...
    def post_compare_swap(
        self,
        now_ns: int,
        connection: int,
        local: LocalSlice,
        remote: RemoteAddress,
        compare: int,
        swap: int,
        *,
        id: int,
        stream: int = 0,
        signaled: bool = True,
        fence: bool = False,
    ) -> None: ...
    def post_receive(
        self, connection: int, local: LocalSlice, *, id: int, stream: int = 0
    ) -> None: ...
    def post_shared_receive(self, queue: int, local: LocalSlice, *, id: int) -> None: ...
    def attach_shared_queue(self, connection: int, stream: int, queue: int) -> None: ...
    def close(self, now_ns: int, connection: int, abort: Optional[int] = None) -> None: ...
    def statistics(self) -> dict[str, Any]: ...
    def connection_statistics(self, connection: int) -> Optional[dict[str, Any]]: ...
    def path_statistics(self, connection: int, path: int) -> Optional[dict[str, Any]]: ...

@final
class Connection:
    @property
    def handle(self) -> int: ...
    @property
    def service(self) -> int: ...
    @property
    def state(self) -> str: ...
    def post_write(
        self,
        local: Union[LocalSlice, bytes],
        remote: RemoteAddress,
        *,
        stream: int = 0,
        immediate: Optional[int] = None,
    ) -> int: ...
    def post_send(
        self,
        local: Union[LocalSlice, bytes],
        *,
        stream: int = 0,
        immediate: Optional[int] = None,
    ) -> int: ...
    def post_read(self, local: LocalSlice, remote: RemoteAddress, *, stream: int = 0) -> int: ...
    def post_fetch_add(
        self, local: LocalSlice, remote: RemoteAddress, add: int, *, stream: int = 0
    ) -> int: ...
    def post_compare_swap(
        self, local: LocalSlice, remote: RemoteAddress, compare: int, swap: int, *, stream: int = 0
    ) -> int: ...
    def post_receive(self, local: LocalSlice, *, stream: int = 0) -> int: ...
    def wait(self, id: int, *, timeout: Optional[float] = 5.0) -> Completion: ...
    def poll(self) -> Optional[Completion]: ...
    def write(
        self,
        local: Union[LocalSlice, bytes],
        remote: RemoteAddress,
        *,
        stream: int = 0,
        immediate: Optional[int] = None,
        timeout: Optional[float] = 5.0,
    ) -> Completion: ...
    def send(
        self,
        local: Union[LocalSlice, bytes],
        *,
        stream: int = 0,
        immediate: Optional[int] = None,
        timeout: Optional[float] = 5.0,
    ) -> Completion: ...
    def read(
        self,
        local: LocalSlice,
        remote: RemoteAddress,
        *,
        stream: int = 0,
        timeout: Optional[float] = 5.0,
    ) -> Completion: ...
    def fetch_add(
        self,
        local: LocalSlice,
        remote: RemoteAddress,
        add: int,
        *,
        stream: int = 0,
        timeout: Optional[float] = 5.0,
    ) -> Completion: ...
    def compare_swap(
        self,
        local: LocalSlice,
        remote: RemoteAddress,
        compare: int,
        swap: int,
        *,
        stream: int = 0,
        timeout: Optional[float] = 5.0,
    ) -> Completion: ...
    def receive(
        self, local: LocalSlice, *, stream: int = 0, timeout: Optional[float] = 5.0
    ) -> Completion: ...
    def close(self, *, abort: Optional[int] = None, timeout: Optional[float] = 5.0) -> str: ...
    def wait_closed(self, *, timeout: Optional[float] = 5.0) -> str: ...
    def statistics(self) -> Optional[dict[str, Any]]: ...
    def path_statistics(self, path: int) -> Optional[dict[str, Any]]: ...

@final
class Nic:
    def __new__(
        cls,
        planes: Union[str, list[str]],
        *,
        faults: Optional[str] = None,
        listen: bool = True,
        connections: int = 64,
        payload_bytes: Optional[int] = None,
        rate_mbps: Optional[int] = None,
        entropies: int = 64,
        first_source_port: Optional[int] = None,
        omit_checksum: bool = False,
        accept: Optional[ConnectionSettings] = None,
    ) -> Nic: ...
    @property
    def addresses(self) -> list[str]: ...
    @property
    def payload_bytes(self) -> int: ...
    @property
    def closed(self) -> bool: ...
    def register(self, memory: _Memory, access: str = "rwRWA") -> Region: ...
    def connect(
        self,
        peer: Union[str, list[str]],
        *,
        timeout: Optional[float] = 5.0,
        **settings: Unpack[ConnectionSettings],
    ) -> Connection: ...
    def accept(self, *, timeout: Optional[float] = None) -> Connection: ...
    def poll_event(self) -> Optional[Event]: ...
    def statistics(self) -> dict[str, Any]: ...
    def close(self, *, timeout: float = 5.0) -> bool: ...
    def __enter__(self) -> Nic: ...
    def __exit__(self, *exception: object) -> None: ...

@final
class Table:
    @property
    def name(self) -> str: ...
    @property
    def column_names(self) -> list[str]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, name: str, /) -> list[Any]: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object: ...

def simulate(
    name: str,
    text: str,
    folder: Path,
    settings: list[tuple[str, Any]],
    seed: Optional[int] = None,
    progress: Optional[Callable[[int, int, int, int], object]] = None,
    trace: Optional[Path] = None,
) -> tuple[dict[str, Any], dict[str, Table], Optional[BaseException]]: ...
def to_toml(scenario: dict[str, Any]) -> str: ...
def crc32c(data: bytes) -> int: ...
def packet_record(data: bytes) -> dict[str, Any]: ...
