"""What the gateway has done so far: the figures in its progress lines, metrics and health page."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class EndpointStatus:
    """The figures of one endpoint.

    Shape: `acknowledged` counts messages that are durable, and acknowledged if the protocol has acknowledgements.
    `failure` is the reason why the endpoint is not receiving. `rejected` counts messages that were not captured, by
    reason.
    """

    xid: str
    protocol: str
    is_receiving: bool = False
    received: int = 0
    received_bytes: int = 0
    acknowledged: int = 0
    connections: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    failure: str | None = None

    def count(self, line: bytes) -> None:
        """Count a message that was received."""
        self.received += 1
        self.received_bytes += len(line)

    def to_dict(self) -> dict[str, Any]:
        """The numbers as JSON."""
        numbers: dict[str, Any] = {"protocol": self.protocol, "receiving": self.is_receiving}
        numbers |= {"received": self.received, "bytes": self.received_bytes, "acknowledged": self.acknowledged}
        numbers |= {"connections": self.connections, "rejected": dict(self.rejected)}
        return numbers | ({"failure": self.failure} if self.failure else {})


@dataclass(slots=True)
class GatewayStatus:
    """The figures of the gateway. `failure` is the error of the last write, until a write succeeds."""

    endpoints: list[EndpointStatus] = field(default_factory=list)
    messages: int = 0
    groups: int = 0
    write_seconds: float = 0.0
    write_failures: int = 0
    pending_bytes: int = 0
    failure: str | None = None
    started: float = field(default_factory=time.time)

    def committed(self, messages: int, seconds: float) -> None:
        """Count a group of messages that became durable."""
        self.messages += messages
        self.groups += 1
        self.write_seconds += seconds

    @property
    def is_ready(self) -> bool:
        """Whether every endpoint is receiving and segments can be written."""
        return self.failure is None and all(endpoint.is_receiving for endpoint in self.endpoints)

    def to_dict(self) -> dict[str, Any]:
        """The numbers as JSON."""
        numbers: dict[str, Any] = {"durable": self.messages, "groups": self.groups, "pending_bytes": self.pending_bytes}
        numbers |= {"write_seconds": round(self.write_seconds, 3), "write_failures": self.write_failures}
        numbers |= {"failure": self.failure} if self.failure else {}
        return numbers | {"endpoints": {endpoint.xid: endpoint.to_dict() for endpoint in self.endpoints}}
