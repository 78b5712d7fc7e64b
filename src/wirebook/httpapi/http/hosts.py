"""Host names: which of them are loopback, and which an option such as `--allowed-host` allows.

Spec: RFC 9110#7.2; RFC 6761#6.3; docs/registry.md#hosts.
"""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Final, NamedTuple

HOST: Final = re.compile(r"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._~\-]{1,253})(?::(\d{1,5}))?")
LOCALHOST: Final = "localhost"


class AllowedHost(NamedTuple):
    """An allowed host (normalised) on one port, or on any port (None)."""

    host: str
    port: int | None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port is None else f"{host}:{self.port}"

    def matches(self, host: str, port: int | None) -> bool:
        """Return whether a normalised host and its port are allowed."""
        return self.host == host and self.port in (None, port)


def parse_allowed_host(text: str) -> AllowedHost:
    """Parse HOST or HOST:PORT, with IPv6 addresses in brackets. Raises: ValueError"""
    host_and_port = split_host(text)
    if host_and_port is None:
        raise ValueError(f"'{text}' is not HOST or HOST:PORT; write an IPv6 address in brackets")
    return AllowedHost(*host_and_port)


def normalise(host: str) -> str:
    """Return a host in the form in which hosts are compared.

    It is in lower case, without brackets and trailing dot; IPv6 is compressed, and an IPv4-mapped address is IPv4.
    """
    name = host.strip("[]").lower().removesuffix(".")
    try:
        address = ip_address(name)
    except ValueError:
        return name
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(address)


@lru_cache(maxsize=1024)
def split_host(text: str) -> tuple[str, int | None] | None:
    """Return the normalised host and the port of a Host header; None if the header is not valid."""
    match = HOST.fullmatch(text)
    port = int(match[2]) if match and match[2] else None
    if not match or (port is not None and not 0 < port < 65536):
        return None
    return normalise(match[1]), port


@lru_cache(maxsize=1024)
def is_loopback(host: str) -> bool:
    """Return whether a host always refers to this machine.

    These are 127.0.0.0/8, ::1, and `localhost` with its subdomains, which cannot be registered.
    """
    name = normalise(host)
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == LOCALHOST or name.endswith(f".{LOCALHOST}")
