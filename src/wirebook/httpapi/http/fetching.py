"""Fetches the documents that a model includes from other hosts, which must be allowed, within size and time limits.

Only http and https are supported. Proxies and passwords in the environment are ignored. A redirect must lead to an
address that the model itself could include.

Spec: core/model.md#includes-in-the-xregistry-model-data; docs/decisions/0099.
"""

from __future__ import annotations

import time
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urljoin, urlsplit

from wirebook.httpapi.http.hosts import AllowedHost, normalise
from wirebook.text.json import parse_json

if TYPE_CHECKING:
    import httpx

MAX_BYTES: Final = 16 << 20
"""Size limit of one document, in bytes."""

SECONDS: Final = 10.0
"""Time limit for one document, including redirects."""

MAX_REDIRECTS: Final = 5
MAX_DOCUMENTS: Final = 20
"""Maximum number of documents that one model may include from other hosts."""

MAX_DEPTH: Final = 100
HEADERS: Final = {"Accept": "application/json", "Accept-Encoding": "identity"}
OK: Final = 200
DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class IncludeNotFetched(Exception):
    """A model includes a document that has not been fetched.

    The document is then fetched outside of any transaction, and the request is processed again.
    """

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.address = address


@dataclass(frozen=True)
class IncludeFetcher:
    """Fetches JSON documents from the hosts in `allowed`. Units: seconds, bytes."""

    allowed: tuple[AllowedHost, ...] = ()
    seconds: float = SECONDS
    max_bytes: int = MAX_BYTES

    def __call__(self, address: str) -> Any:
        """Return the JSON value at an address. Raises: ValueError with the reason"""
        import httpx  # noqa: PLC0415 (most servers fetch nothing, and importing it takes long)

        try:
            body = self._download(httpx.Client(trust_env=False, timeout=self.seconds / 2, headers=HEADERS), address)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ValueError(f"it cannot be fetched: {error or type(error).__name__}") from None
        try:
            return parse_json(body.removeprefix(BOM_UTF8), max_depth=MAX_DEPTH, strict=True)
        except ValueError as error:
            raise ValueError(f"it is not valid JSON: {error}") from None

    def _download(self, client: httpx.Client, address: str) -> bytes:
        deadline = time.monotonic() + self.seconds
        with client:
            for _ in range(MAX_REDIRECTS + 1):
                self._check_allowed(address)
                with client.stream("GET", address) as response:
                    self._check_time(deadline)
                    if response.is_redirect:
                        address = urljoin(address, response.headers.get("location", ""))
                    elif response.status_code == OK:
                        return self._read(response.iter_bytes(), deadline)
                    else:
                        raise ValueError(f"the response has status {response.status_code}")
        raise ValueError(f"it redirects more than {MAX_REDIRECTS} times")

    def _check_allowed(self, address: str) -> None:
        """Raises: ValueError"""
        parts = urlsplit(address)
        if parts.scheme not in DEFAULT_PORTS or not parts.hostname or "@" in parts.netloc:
            raise ValueError(f"'{address}' is not an http or https URL without credentials")
        host, port = normalise(parts.hostname), parts.port or DEFAULT_PORTS[parts.scheme]
        if not any(allowed.matches(host, port) for allowed in self.allowed):
            hosts = ", ".join(map(str, self.allowed)) or "none"
            raise ValueError(f"the host '{host}:{port}' is not allowed by --allow-fetch; allowed: {hosts}")

    def _read(self, chunks: Iterable[bytes], deadline: float) -> bytes:
        body = bytearray()
        for chunk in chunks:
            body += chunk
            if len(body) > self.max_bytes:
                raise ValueError(f"it is larger than {self.max_bytes} bytes")
            self._check_time(deadline)
        return bytes(body)

    def _check_time(self, deadline: float) -> None:
        """Raises: ValueError"""
        if time.monotonic() > deadline:
            raise ValueError(f"fetching it takes longer than {self.seconds:g} s")


class FetchedIncludes:
    """The documents that the model of one request includes, by address."""

    def __init__(self, fetch: Callable[[str], Any]) -> None:
        self._fetch = fetch
        self._documents: dict[str, Any] = {}

    def __call__(self, address: str) -> Any:
        """Return a document that was fetched before. Raises: IncludeNotFetched; ValueError, if fetching it failed"""
        if address not in self._documents:
            raise IncludeNotFetched(address)
        if isinstance(document := self._documents[address], ValueError):
            raise document
        return document

    def fetch(self, address: str) -> None:
        """Fetch a document and keep it, or the error if that fails."""
        try:
            if len(self._documents) == MAX_DOCUMENTS:
                raise ValueError(f"the model includes more than {MAX_DOCUMENTS} documents")
            self._documents[address] = self._fetch(address)
        except ValueError as error:
            self._documents[address] = error
