"""Hosts: which names and addresses are loopback, and which an option such as `--allowed-host` allows.

Spec: RFC 9110#7.2; RFC 6761#6.3; docs/registry.md#hosts.
"""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Final, NamedTuple

HOST: Final = re.compile(r"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._~\-]{1,253})(?::(\d{1,5}))?")
LOCALHOST: Final = "localhost"


class Allowed(NamedTuple):
    """A host that is allowed, on one port or (None) on any. `host` is normalised."""

    host: str
    port: int | None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port is None else f"{host}:{self.port}"


def parse_allowed(text: str) -> Allowed:
    """HOST or HOST:PORT, IPv6 addresses in brackets. Raises: ValueError"""
    found = split_host(text)
    if found is None:
        raise ValueError(f"'{text}' is not HOST or HOST:PORT; write an IPv6 address in brackets")
    return Allowed(*found)


def normalise(host: str) -> str:
    """A host in the form in which hosts are compared: lower case, no brackets, no dot at the end, short IPv6."""
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
    """Host (normalised) and port of a Host header; None if it is not valid."""
    found = HOST.fullmatch(text)
    port = int(found[2]) if found and found[2] else None
    if not found or (port is not None and not 0 < port < 65536):
        return None
    return normalise(found[1]), port


def is_loopback(host: str) -> bool:
    """Whether a host always is this machine: 127.0.0.0/8, ::1, `localhost`, and names below `localhost`, which nobody
    can register."""
    name = normalise(host)
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == LOCALHOST or name.endswith(f".{LOCALHOST}")
