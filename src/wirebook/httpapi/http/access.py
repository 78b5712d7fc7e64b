"""Access checks: which requests are allowed, and the URL under which a client sees the registry.

Starlette's TrustedHostMiddleware, ProxyHeadersMiddleware and CORSMiddleware are not used: the checks depend on each
other (the origin of the registry depends on the proxy and on the host), know loopback names and ports, and their errors
are xRegistry errors.

Spec: docs/registry.md#who-may-write; docs/registry.md#hosts.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import Final
from urllib.parse import urlsplit

from wirebook.httpapi.http.hosts import AllowedHost, is_loopback, normalise, split_host
from wirebook.httpapi.http.messages import READ_METHODS
from wirebook.problems import Problem
from wirebook.problems.xregistry import Refused, refused

DEFAULT_PORTS: Final = {"http": 80, "https": 443}
FORWARDED_HEADERS: Final = ("forwarded", "x-forwarded-host", "x-forwarded-prefix", "x-forwarded-proto")
FORWARDED_PAIR: Final = re.compile(r'(?:^|[;,])\s*(for|host|proto)=(?:"([^"]*)"|([^;,\s]*))', re.IGNORECASE)
FORWARDED_PREFIX: Final = re.compile(r"(/[\w.~\-]+)*")


@dataclass(slots=True)
class Caller:
    """The part of a request that access depends on.

    Shape: `headers` has the first header of each name, in lower case; `lines` has all headers; `authority` is the host
    and port of a request target in absolute form; `peer` is the IP address. `is_probe`: the request checks the
    health of the server, so its host is not checked.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    lines: Sequence[tuple[str, str]]
    scheme: str = "http"
    peer: str | None = None
    authority: str | None = None
    is_probe: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessPolicy:
    """The rules for who may send which request.

    `host` is the address that the server listens on, `prefix` its base path without a trailing slash. The other fields
    are options of `wirebook serve`.
    """

    host: str
    prefix: str
    base_url: str | None
    allowed_hosts: tuple[AllowedHost, ...]
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...]
    cors_origins: tuple[str, ...]
    write_token: str | None
    read_only: bool

    def base_of(self, caller: Caller) -> str:
        """Return the URL of the Registry for a caller, without a trailing slash. Raises: bad_host"""
        hosts = [value for name, value in caller.lines if name == "host"]
        if len(hosts) > 1:
            raise Refused(Problem("bad_host", "The request has more than one Host header.", xid=caller.path))
        host = caller.authority if caller.authority is not None else "".join(hosts)
        scheme, prefix = caller.scheme, self.prefix
        if self._is_proxy(caller.peer):
            scheme, host, prefix = _forwarded(caller.lines, scheme, host, prefix)
        if not caller.is_probe:
            self._check_host(scheme, host, caller.path)
        return self.base_url.rstrip("/") if self.base_url else f"{scheme}://{host}{prefix}"

    def _check_host(self, scheme: str, text: str, path: str) -> None:
        """Check that the server answers for a host.

        This prevents DNS rebinding: a web page whose name resolves to this machine sends its own name as the host, and
        would otherwise count as a page of the same origin.

        Raises: bad_host
        """
        host_and_port = split_host(text)
        if host_and_port is None:
            raise Refused(Problem("bad_host", "The Host header is missing or not a valid host.", xid=path))
        host, port = host_and_port[0], host_and_port[1] or DEFAULT_PORTS.get(scheme)
        if self.allowed_hosts:
            if any(allowed.matches(host, port) for allowed in self.allowed_hosts):
                return
            reason = "only the hosts of the option --allowed-host are allowed"
        else:
            own_host = normalise(urlsplit(self.base_url).hostname or "") if self.base_url else None
            if not is_loopback(self.host) or is_loopback(host) or host == own_host:
                return
            reason = "the server listens on loopback and answers for loopback names only; --allowed-host adds others"
        message, detail = "The server does not answer for this host.", f"'{text}': {reason}."
        raise Refused(Problem("bad_host", message, xid=path, detail=detail))

    def check(self, caller: Caller, base: str) -> None:
        """Check that a caller may use the method.

        `base` is the URL of the Registry for this caller.

        Raises: read_only_server, foreign_origin, unauthorized
        """
        if caller.method in READ_METHODS:
            return
        if self.read_only:
            raise refused("read_only_server", caller.path)
        origin = caller.headers.get("origin")
        if origin is not None and not self.is_allowed_origin(origin, base):
            detail = f"The origin '{origin[:200]}' is not allowed; the option --cors-origin of the server adds origins."
            raise refused("foreign_origin", caller.path, detail=detail)
        if self.write_token is not None and not self._has_token(caller):
            raise refused("unauthorized", caller.path)

    def is_allowed_origin(self, origin: str, base: str) -> bool:
        """Return whether pages of `origin` may read responses and write: the registry's origin or an allowed one."""
        own = urlsplit(base)
        return origin.lower() == f"{own.scheme}://{own.netloc}".lower() or origin in self.cors_origins

    def _has_token(self, caller: Caller) -> bool:
        scheme, _, token = caller.headers.get("authorization", "").partition(" ")
        expected = (self.write_token or "").encode()
        return scheme.lower() == "bearer" and hmac.compare_digest(token.strip().encode(), expected)

    def _is_proxy(self, peer: str | None) -> bool:
        if peer is None or not self.trusted_proxies:
            return False
        try:
            address = ip_address(peer)
        except ValueError:
            return False
        return any(address in network for network in self.trusted_proxies)


def _forwarded(lines: Sequence[tuple[str, str]], scheme: str, host: str, prefix: str) -> tuple[str, str, str]:
    """Return scheme, host and prefix as the nearest proxy received them, from Forwarded or else from X-Forwarded-*.

    The nearest proxy has added the last item of the last header of a name.
    """
    last = {name: value.rpartition(",")[2].strip() for name, value in lines if name in FORWARDED_HEADERS}
    if forwarded := last.get("forwarded"):
        pairs = {name.lower(): quoted or bare for name, quoted, bare in FORWARDED_PAIR.findall(forwarded)}
        return _known_scheme(pairs.get("proto"), scheme), pairs.get("host", host), prefix
    outer_prefix = last.get("x-forwarded-prefix", "").rstrip("/")
    if not FORWARDED_PREFIX.fullmatch(outer_prefix):
        outer_prefix = ""
    scheme = _known_scheme(last.get("x-forwarded-proto"), scheme)
    return scheme, last.get("x-forwarded-host") or host, outer_prefix + prefix


def _known_scheme(text: str | None, default: str) -> str:
    return text.lower() if text and text.lower() in ("http", "https") else default
