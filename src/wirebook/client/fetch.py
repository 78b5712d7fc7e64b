"""Fetching URLs of one origin, within limits.

Links and redirects to another origin are not followed. Responses with an ETag are cached and revalidated.

Spec: docs/catalogues.md#loading; pagination/spec.md#http-binding.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final

import httpx

from wirebook.problems import Problem, WirebookError

MAX_REDIRECTS: Final = 5
ACCEPT: Final = "application/json, application/yaml;q=0.9, */*;q=0.1"


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Limits of fetching one source.

    Units: `requests` is a number of requests, `size` the bytes of all decompressed bodies, `seconds` the total time,
    `wait` the seconds without data in one response.
    """

    requests: int = 2000
    size: int = 64 * 1024 * 1024
    seconds: float = 120.0
    wait: float = 15.0


DEFAULT_FETCH_LIMITS: Final = FetchLimits()


@dataclass(frozen=True, slots=True)
class FetchedResponse:
    """The body of a response, its URL after redirects, its media type, the URL of the next page, and its ETag."""

    url: str
    body: bytes
    media_type: str
    next: str | None
    etag: str | None = None


Cache = dict[str, FetchedResponse]
"""Responses by URL, for conditional requests."""


def origin_of(url: str | httpx.URL) -> tuple[str, str, int | None]:
    """Return the scheme, host and port of a URL."""
    parsed = httpx.URL(url)
    return parsed.scheme, parsed.host, parsed.port


@dataclass
class Fetcher:
    """Gets URLs of one origin. Use it as a context manager.

    Raises: WirebookError (``fetch-failed``, ``fetch-limit``)
    """

    url: str
    limits: FetchLimits = DEFAULT_FETCH_LIMITS
    cache: Cache = field(default_factory=dict)
    requests: int = 0
    size: int = 0
    started: float = 0.0
    client: httpx.Client = field(init=False, repr=False)

    def __enter__(self) -> Fetcher:
        self.started = time.monotonic()
        self.client = httpx.Client(timeout=self.limits.wait, headers={"Accept": ACCEPT}, follow_redirects=False)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.client.close()

    def same_origin(self, url: str) -> bool:
        """Return whether a URL has the origin of the fetcher."""
        return origin_of(url) == origin_of(self.url)

    def get(self, url: str) -> FetchedResponse:
        """Return the response of a URL, after redirects."""
        try:
            for _ in range(MAX_REDIRECTS + 1):
                response = self._request(url)
                if isinstance(response, FetchedResponse):
                    return response
                url = response
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
            raise WirebookError(_failed(url, str(error) or type(error).__name__)) from None
        raise WirebookError(_failed(url, f"more than {MAX_REDIRECTS} redirects"))

    def _request(self, url: str) -> FetchedResponse | str:
        """Return the response, or the URL that it redirects to."""
        self._check(self._elapsed(), self.limits.seconds, "seconds")
        if not self.same_origin(url):
            message = f"'{url}' has another origin than '{self.url}' and was not fetched"
            raise WirebookError(Problem(code="fetch-failed", message=message, file=self.url, actual=url))
        self.requests += 1
        self._check(self.requests, self.limits.requests, "requests")
        cached = self.cache.get(url)
        headers = {"If-None-Match": cached.etag} if cached and cached.etag else {}
        with self.client.stream("GET", url, headers=headers) as response:
            if cached and response.status_code == httpx.codes.NOT_MODIFIED:
                return cached
            if response.is_redirect:
                return str(httpx.URL(url).join(response.headers.get("location", "")))
            if not response.is_success:
                reason = f"the server answers {response.status_code}{_title(self._read(response))}"
                raise WirebookError(_failed(url, reason, response.status_code))
            body = self._read(response)
        following = response.links.get("next", {}).get("url")
        media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        following = str(httpx.URL(url).join(following)) if following else None
        fetched = FetchedResponse(url, body, media_type, following, response.headers.get("etag"))
        if fetched.etag:
            self.cache[url] = fetched
        return fetched

    def _read(self, response: httpx.Response) -> bytes:
        chunks: list[bytes] = []
        for chunk in response.iter_bytes():
            self.size += len(chunk)
            self._check(self.size, self.limits.size, "bytes")
            self._check(self._elapsed(), self.limits.seconds, "seconds")
            chunks.append(chunk)
        return b"".join(chunks)

    def _elapsed(self) -> float:
        return time.monotonic() - self.started

    def _check(self, used: float, allowed: float, unit: str) -> None:
        if used > allowed:
            limit = f"{allowed:g} {unit}"
            message = f"fetching '{self.url}' takes more than {limit}"
            raise WirebookError(Problem(code="fetch-limit", message=message, file=self.url, expected=limit))


def _title(body: bytes) -> str:
    """Return the title of an xRegistry error response."""
    try:
        title = json.loads(body)["title"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return ""
    return f": {title[:200]}" if isinstance(title, str) else ""


def _failed(url: str, reason: str, status: int | None = None) -> Problem:
    return Problem(code="fetch-failed", message=f"'{url}': {reason}", file=url, actual=status)
