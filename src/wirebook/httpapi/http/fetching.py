"""Documents of other hosts that models include: from hosts that were allowed, up to a size, within a time.

Rule: only http and https, nothing of the environment (proxies, passwords), and a redirect leads nowhere that a
reference in a model could not.

Spec: core/model.md#includes-in-the-xregistry-model-data; docs/decisions/0099.
"""

from __future__ import annotations

import time
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urljoin, urlsplit

from wirebook.httpapi.http.hosts import Allowed, normalise
from wirebook.text.json import parse_json

if TYPE_CHECKING:
    import httpx

MAX_BYTES: Final = 16 << 20
SECONDS: Final = 10.0
"""How much of a document is read, and how long that may take, redirects included."""

MAX_REDIRECTS: Final = 5
MAX_DOCUMENTS: Final = 20
"""How many documents one model may need from elsewhere."""

MAX_DEPTH: Final = 100
HEADERS: Final = {"Accept": "application/json", "Accept-Encoding": "identity"}
OK: Final = 200
_PORTS: Final = {"http": 80, "https": 443}


class Unfetched(Exception):
    """A document is needed that was not fetched. It is, outside of any transaction, and the request decided anew."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.address = address


@dataclass(frozen=True)
class IncludeFetcher:
    """Gets JSON from the hosts that are `allowed`."""

    allowed: tuple[Allowed, ...] = ()
    seconds: float = SECONDS
    max_bytes: int = MAX_BYTES

    def __call__(self, address: str) -> Any:
        """The document at an address. Raises: ValueError, which says why not"""
        import httpx  # noqa: PLC0415 (most servers fetch nothing, and it takes long to load)

        try:
            body = self._read(httpx.Client(trust_env=False, timeout=self.seconds / 2, headers=HEADERS), address)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ValueError(f"it cannot be fetched: {error or type(error).__name__}") from None
        return _parse(body)

    def _read(self, client: httpx.Client, address: str) -> bytes:
        deadline = time.monotonic() + self.seconds
        with client:
            for _ in range(MAX_REDIRECTS + 1):
                self._permit(address)
                with client.stream("GET", address) as answer:
                    if answer.is_redirect:
                        address = urljoin(address, answer.headers.get("location", ""))
                    elif answer.status_code == OK:
                        return self._body(answer.iter_bytes(), deadline)
                    else:
                        raise ValueError(f"it answers {answer.status_code}")
        raise ValueError(f"it leads to more than {MAX_REDIRECTS} others")

    def _permit(self, address: str) -> None:
        """Raises: ValueError"""
        parts = urlsplit(address)
        if parts.scheme not in _PORTS or not parts.hostname or "@" in parts.netloc:
            raise ValueError(f"'{address}' may not be fetched: it is no address of http or https")
        host, port = normalise(parts.hostname), parts.port or _PORTS[parts.scheme]
        if not any(each.host == host and each.port in (None, port) for each in self.allowed):
            hosts = ", ".join(map(str, self.allowed))
            raise ValueError(f"'{host}:{port}' may not be asked; {f'allowed: {hosts}' if hosts else 'no host is'}")

    def _body(self, pieces: Iterable[bytes], deadline: float) -> bytes:
        body = bytearray()
        for piece in pieces:
            body += piece
            if len(body) > self.max_bytes:
                raise ValueError(f"it is larger than {self.max_bytes} bytes")
            if time.monotonic() > deadline:
                raise ValueError(f"it takes longer than {self.seconds:g} s")
        return bytes(body)


def _parse(body: bytes) -> Any:
    """Raises: ValueError"""
    try:
        return parse_json(body.removeprefix(BOM_UTF8), max_depth=MAX_DEPTH, strict=True)
    except ValueError as error:
        raise ValueError(f"it is not JSON: {error}") from None


class Fetched:
    """What one request needs from elsewhere, by address: documents, or why there is none."""

    def __init__(self, fetch: Callable[[str], Any]) -> None:
        self._fetch = fetch
        self._found: dict[str, Any] = {}

    def __call__(self, address: str) -> Any:
        """A document that was fetched before. Raises: Unfetched, ValueError"""
        if address not in self._found:
            raise Unfetched(address)
        if isinstance(found := self._found[address], ValueError):
            raise found
        return found

    def add(self, address: str) -> None:
        """Fetches a document."""
        try:
            if len(self._found) == MAX_DOCUMENTS:
                raise ValueError(f"it is one of more than {MAX_DOCUMENTS} documents")
            self._found[address] = self._fetch(address)
        except ValueError as error:
            self._found[address] = error
