"""What can go wrong. Each says in its text what it was and what would do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from ._metaroce import Completion, Status
    from ._simulate import Result


class MetaroceError(Exception):
    """The base of all errors of this package."""


class ConfigError(MetaroceError, ValueError):
    """A setting is wrong; the text begins with its name."""


class ScenarioError(MetaroceError, ValueError):
    """A scenario is wrong.

    Attributes:
        place: ``file:line:column``, or the setting that it comes from.
        file: the file, if it comes from one.
        line: the line in it, from 1.
        column: the column, from 1.
        key: the key, with those of the tables around it; empty where there is none.
    """

    place: str
    file: Optional[str]
    line: Optional[int]
    column: Optional[int]
    key: str

    def __init__(self, text: str, place: str = "", key: str = "") -> None:
        super().__init__(text)
        self.place = place
        self.key = key
        self.file = self.line = self.column = None
        parts = place.rsplit(":", 2)
        if len(parts) == 3 and parts[1].isdigit() and parts[2].isdigit():
            self.file, self.line, self.column = parts[0], int(parts[1]), int(parts[2])


class RegionError(MetaroceError):
    """Memory could not be registered or deregistered."""


class ConnectError(MetaroceError):
    """A connection could not be asked for."""


class PostError(MetaroceError):
    """An operation or a receive buffer was not taken; nothing has changed."""


class ConnectionClosed(MetaroceError, ConnectionError):
    """The connection was not made, or has ended; ``reason`` is why, as in :class:`metaroce.Closed`."""

    reason: str

    def __init__(self, text: str, reason: str = "") -> None:
        super().__init__(text)
        self.reason = reason


class TimedOut(MetaroceError, TimeoutError):
    """It took longer than was allowed. What was posted is still under way: it can be waited for again, by ``id``, its number."""

    id: Optional[int]

    def __init__(self, text: str, id: Optional[int] = None) -> None:
        super().__init__(text)
        self.id = id


class NicError(MetaroceError, OSError):
    """The system did not do what the NIC needs, or the NIC was closed."""


class OperationError(MetaroceError):
    """An operation ended without success.

    Attributes:
        completion: how it ended.
        status: the same in one word.
    """

    completion: Completion
    status: Status

    def __init__(self, completion: Completion) -> None:
        super().__init__(f"{completion.kind.name} {completion.id} ended with {completion.status.name}")
        self.completion = completion
        self.status = completion.status


class Interrupted(KeyboardInterrupt):
    """A simulation was interrupted by the user; ``result`` is what there was by then."""

    result: Result

    def __init__(self, result: Result) -> None:
        super().__init__("the simulation was interrupted; `result` has what there was by then")
        self.result = result


# They are shown, and caught, by the name under which they are known.
for _error in (
    MetaroceError,
    ConfigError,
    ScenarioError,
    RegionError,
    ConnectError,
    PostError,
    ConnectionClosed,
    TimedOut,
    NicError,
    OperationError,
    Interrupted,
):
    _error.__module__ = "metaroce"
