"""The door: decides whether a request may pass, and under which URL its client sees the registry.

Spec: docs/registry.md#who-may-write.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from wirebook.httpapi.http.hosts import is_loopback, normalise, split_host
from wirebook.httpapi.options import ServerOptions
from wirebook.problems.xregistry import ErrorType, Refused

READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
DEFAULT_PORTS: Final = {"http": 80, "https": 443}
FORWARDED: Final = re.compile(r'(?:^|[;,])\s*(for|host|proto)=(?:"([^"]*)"|([^;,\s]*))', re.IGNORECASE)


class Barred(Refused):
    """A request that is not let in: `status` 400, 401 or 403. These are no errors of xRegistry."""

    def __init__(self, status: int, name: str, title: str, path: str, detail: str | None = None) -> None:
        super().__init__(ErrorType(name, status, title, text=None), path, {}, detail)


@dataclass(slots=True)
class Caller:
    """Who sends a request. `headers` by their names in lower case, the first of each; `hosts` are all Host headers,
    `authority` that of a request target in absolute form; `peer` is the address, if any; `is_probe`: it asks for the
    health of the server, which does not depend on the host."""

    method: str
    path: str
    headers: Mapping[str, str]
    hosts: Sequence[str]
    scheme: str = "http"
    peer: str | None = None
    authority: str | None = None
    is_probe: bool = False


@dataclass(frozen=True, slots=True)
class Door:
    """Judges callers by the options of the server."""

    options: ServerOptions

    def base_of(self, caller: Caller) -> str:
        """The Registry's URL for a caller, without a slash at its end. Raises: Barred"""
        if len(caller.hosts) > 1:
            raise Barred(400, "bad_host", "The request has more than one header Host.", caller.path)
        host = caller.authority if caller.authority is not None else "".join(caller.hosts)
        scheme, prefix = caller.scheme, self.options.prefix
        if self._is_proxy(caller.peer):
            scheme, host, prefix = _forwarded(caller.headers, scheme, host, prefix)
        if not caller.is_probe:
            self._check_host(scheme, host, caller.path)
        return self.options.base_url.rstrip("/") if self.options.base_url else f"{scheme}://{host}{prefix}"

    def _check_host(self, scheme: str, text: str, path: str) -> None:
        """Whether the server answers for a host. A page whose name was made to resolve to this machine (DNS rebinding)
        sends its own name, and is of the same origin by that. Raises: Barred"""
        found = split_host(text)
        if found is None:
            raise Barred(400, "bad_host", "The header Host is missing or not a valid host.", path)
        host, port = found[0], found[1] or DEFAULT_PORTS.get(scheme)
        if self.options.allowed_hosts:
            if any(
                allowed_host.host == host and allowed_host.port in (None, port)
                for allowed_host in self.options.allowed_hosts
            ):
                return
            why = "allowed hosts are those of the option --allowed-host"
        elif not is_loopback(self.options.host) or is_loopback(host) or host == self._own_host():
            return
        else:
            why = (
                "the server listens on loopback and answers for loopback names only, unless --allowed-host adds others"
            )
        raise Barred(400, "bad_host", "The server does not answer for this host.", path, f"'{text}': {why}.")

    def _own_host(self) -> str | None:
        """The host of --base-url."""
        return normalise(urlsplit(self.options.base_url).hostname or "") if self.options.base_url else None

    def check(self, caller: Caller, base: str) -> None:
        """Whether a caller may do what it asks for. Raises: Barred"""
        if caller.method in READS:
            return
        if self.options.read_only:
            raise Barred(403, "read_only_server", "This server is read-only.", caller.path)
        origin = caller.headers.get("origin")
        if origin is not None and not self.is_friend(origin, base):
            detail = f"The origin '{origin[:200]}' may not write here."
            raise Barred(403, "foreign_origin", "A page of another origin may not write here.", caller.path, detail)
        if self.options.write_token is not None and not self._has_token(caller):
            raise Barred(401, "unauthorized", "Writing needs the header Authorization: Bearer.", caller.path)

    def is_friend(self, origin: str, base: str) -> bool:
        """Whether a page of `origin` may read and write: the registry's own, or one that the server was told of."""
        own = urlsplit(base)
        return origin.lower() == f"{own.scheme}://{own.netloc}".lower() or origin in self.options.cors_origins

    def _has_token(self, caller: Caller) -> bool:
        scheme, _, token = caller.headers.get("authorization", "").partition(" ")
        wanted = (self.options.write_token or "").encode()
        return scheme.lower() == "bearer" and hmac.compare_digest(token.strip().encode(), wanted)

    def _is_proxy(self, peer: str | None) -> bool:
        if peer is None or not self.options.trusted_proxies:
            return False
        try:
            address = ip_address(peer)
        except ValueError:
            return False
        return any(address in network for network in self.options.trusted_proxies)


def _forwarded(headers: Mapping[str, str], scheme: str, host: str, prefix: str) -> tuple[str, str, str]:
    """Scheme, host and prefix as the nearest proxy saw them: by Forwarded, or else by X-Forwarded-*."""
    if forwarded := headers.get("forwarded"):
        last = forwarded.rpartition(",")[2]
        found = {name.lower(): quoted or bare for name, quoted, bare in FORWARDED.findall(last)}
        return _scheme(found.get("proto"), scheme), found.get("host", host), prefix
    before = headers.get("x-forwarded-prefix", "").rstrip("/")
    given = _last(headers.get("x-forwarded-proto")), _last(headers.get("x-forwarded-host")) or host
    return _scheme(given[0], scheme), given[1], (before if re.fullmatch(r"(/[\w.~\-]+)*", before) else "") + prefix


def _last(text: str | None) -> str:
    return (text or "").rpartition(",")[2].strip()


def _scheme(text: str | None, otherwise: str) -> str:
    return text.lower() if text and text.lower() in ("http", "https") else otherwise
