"""The options of a server."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Final

from wirebook.httpapi.handlers.context import MIB, ResponseLimits
from wirebook.httpapi.http.access import AccessPolicy
from wirebook.httpapi.http.bodies import BodyLimits
from wirebook.httpapi.http.hosts import AllowedHost

DEFAULT_DATABASE: Final = "sqlite:///./wirebook.db"


@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """The options of `wirebook serve`: where a registry is served, to whom, and within which limits.

    Units: sizes in bytes, times in seconds. `model` is a file, ``empty``, the content of a file, or None for the
    built-in model. `write_token` is the bearer token that writes require; None requires none.
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
    allowed_hosts: tuple[AllowedHost, ...] = ()
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...] = ()
    allowed_fetches: tuple[AllowedHost, ...] = ()
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

    @cached_property
    def prefix(self) -> str:
        """The base path without a trailing slash; "" for the root."""
        return "/" + self.base_path.strip("/") if self.base_path.strip("/") else ""

    @property
    def response_limits(self) -> ResponseLimits:
        """The limits of responses."""
        return ResponseLimits(
            page=self.max_page,
            response=self.max_response,
            read_seconds=self.request_timeout,
            export_seconds=self.stream_timeout,
        )

    @property
    def body_limits(self) -> BodyLimits:
        """The limits of request bodies."""
        return BodyLimits(self.max_body, chunk_seconds=self.request_timeout, body_seconds=self.stream_timeout)

    @property
    def access_policy(self) -> AccessPolicy:
        """The rules for who may send which request."""
        return AccessPolicy(
            host=self.host,
            prefix=self.prefix,
            base_url=self.base_url,
            allowed_hosts=self.allowed_hosts,
            trusted_proxies=self.trusted_proxies,
            cors_origins=self.cors_origins,
            write_token=self.write_token,
            read_only=self.read_only,
        )
