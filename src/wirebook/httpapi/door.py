"""The door: who may come in, and under which URL the registry is for them. The one place where a request is judged.

Spec: docs/registry.md#who-may-write.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from wirebook.httpapi.options import Options
from wirebook.problems.xregistry import ErrorType, Refused

HOST: Final = re.compile(r"(?:[A-Za-z0-9._~\-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?\Z")
READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
FORWARDED: Final = re.compile(r'(?:^|[;,])\s*(for|host|proto)=(?:"([^"]*)"|([^;,\s]*))', re.IGNORECASE)


class Barred(Refused):
    """A request that is not let in: `status` 400, 401 or 403. These are no errors of xRegistry."""

    def __init__(self, status: int, name: str, title: str, path: str, detail: str | None = None) -> None:
        super().__init__(ErrorType(name, status, title, text=None), path, {}, detail)


@dataclass(slots=True)
class Caller:
    """Who sends a request. `headers` by their names in lower case, the first of each; `peer` is the address, if any."""

    method: str
    path: str
    headers: Mapping[str, str]
    scheme: str = "http"
    peer: str | None = None


@dataclass(frozen=True, slots=True)
class Door:
    """Judges callers by the options of the server."""

    options: Options

    def base_of(self, caller: Caller) -> str:
        """The Registry's URL for a caller, without a slash at its end. Raises: Barred"""
        scheme, host, prefix = caller.scheme, caller.headers.get("host", ""), self.options.prefix
        if self._is_proxy(caller.peer):
            scheme, host, prefix = _forwarded(caller.headers, scheme, host, prefix)
        if not HOST.match(host):
            raise Barred(400, "bad_host", "The header Host names no host.", caller.path)
        if self.options.allowed_hosts and host not in self.options.allowed_hosts:
            raise Barred(400, "bad_host", "The host is not one that this server answers for.", caller.path)
        return self.options.base_url.rstrip("/") if self.options.base_url else f"{scheme}://{host}{prefix}"

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
        return origin == f"{own.scheme}://{own.netloc}" or origin in self.options.cors_origins

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
