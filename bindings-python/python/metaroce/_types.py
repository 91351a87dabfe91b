"""Types of what goes in and out."""

from typing import Literal, TypedDict, Union

from ._metaroce import Closed, Completion, Connected, PlaneDown, PlaneUp, StreamFailed

Event = Union[Completion, Connected, Closed, StreamFailed, PlaneDown, PlaneUp]
"""What ``poll_event`` gives."""


class EndpointSettings(TypedDict, total=False):
    """Settings of an :class:`Endpoint`, all of its connections' too. What is not given is the core's default."""

    plane_mbps: int
    payload_bytes: int
    overhead_bytes: int
    entropies: int
    listen: bool
    omit_checksum: bool
    hints: bool
    ack_blocks: int
    ack_packets: int
    ack_delay_ns: int


class ConnectionSettings(TypedDict, total=False):
    """Settings of a connection. What is not given is its endpoint's or NIC's default."""

    paths: int
    run: int
    reorder_tolerance: int
    rnr_attempts: int
    announce: bool
    service: int
    min_probe_timeout_ns: int
    failure_timeout_ns: int
    keep_alive_ns: int
    rnr_delay_ns: int
    initial_rtt_ns: int
    least_rtt_ns: int
    controller: Union[Literal["coupled", "none"], int]
    """Or a fixed rate in Mbit/s."""
