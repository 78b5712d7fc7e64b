"""What a server is told when it is started."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Final

from wirebook.httpapi.http.hosts import Allowed

DEFAULT_DATABASE: Final = "sqlite:///./wirebook.db"
MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseLimits:
    """How much one answer has at most: entities on a page, and bytes; None: as many as there are. How many seconds
    reading it takes, and an export."""

    page: int = 1000
    response: int | None = 256 * MIB
    read_seconds: float = 30
    export_seconds: float = 300


LIMITS: Final = ResponseLimits()


@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """Where a registry is served, for whom, and within which limits.

    Units: sizes in bytes, times in seconds. `write_token` is the text that a client must send to write; None asks for
    none.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    database: str = DEFAULT_DATABASE
    registryid: str = "wirebook"
    base_path: str = "/"
    base_url: str | None = None
    model: Path | str | bytes | None = None
    write_token: str | None = None
    read_only: bool = False
    insecure_writes: bool = False
    cors_origins: tuple[str, ...] = ()
    allowed_hosts: tuple[Allowed, ...] = ()
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...] = ()
    allowed_fetches: tuple[Allowed, ...] = ()
    events_sink: str | None = None
    events_keep: float = 24 * 3600
    access_log: bool = False
    log_format: str = "text"
    strict_json_schema: bool = False
    max_body: int = 64 * MIB
    max_page: int = 1000
    max_response: int = 256 * MIB
    request_timeout: float = 30
    stream_timeout: float = 300

    @property
    def limits(self) -> ResponseLimits:
        return ResponseLimits(
            page=self.max_page,
            response=self.max_response,
            read_seconds=self.request_timeout,
            export_seconds=self.stream_timeout,
        )

    @cached_property
    def prefix(self) -> str:
        """The base path without a slash at its end; "" for the root."""
        return "/" + self.base_path.strip("/") if self.base_path.strip("/") else ""
