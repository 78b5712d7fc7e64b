"""Fetching: an address becomes a text, within limits and without leaving the origin.

Only the origin that the user named is ever asked: a link or a redirect to elsewhere is refused. What was fetched before
is asked for under its tag, and does not come again if it is the same.

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
    """What one source may cost.

    Units: `requests` answers, `size` bytes of all bodies together (unpacked), `seconds` in all, `wait` seconds for one
    answer to go on.
    """

    requests: int = 2000
    size: int = 64 * 1024 * 1024
    seconds: float = 120.0
    wait: float = 15.0


DEFAULT_FETCH_LIMITS: Final = FetchLimits()


@dataclass(frozen=True, slots=True)
class FetchedResponse:
    """A body and what its headers say: where it came from in the end, its media type, the address of the next page, and
    the tag under which the server knows it."""

    url: str
    body: bytes
    media_type: str
    next: str | None
    tag: str | None = None


Cache = dict[str, FetchedResponse]
"""Answers by the address they came from, to be asked for again."""


def origin_of(url: str | httpx.URL) -> tuple[str, str, int | None]:
    """Scheme, host and port: what must stay the same."""
    parsed = httpx.URL(url)
    return parsed.scheme, parsed.host, parsed.port


@dataclass
class Fetcher:
    """Gets addresses of one origin. Use it as a context manager.

    Raises: WirebookError with fetch-failed or fetch-limit.
    """

    url: str
    limits: FetchLimits = DEFAULT_FETCH_LIMITS
    cache: Cache = field(default_factory=dict)
    requests: int = 0
    size: int = 0
    deadline: float = 0.0
    client: httpx.Client = field(init=False, repr=False)

    def __enter__(self) -> Fetcher:
        self.deadline = time.monotonic() + self.limits.seconds
        self.client = httpx.Client(timeout=self.limits.wait, headers={"Accept": ACCEPT}, follow_redirects=False)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.client.close()

    def same_origin(self, url: str) -> bool:
        return origin_of(url) == origin_of(self.url)

    def get(self, url: str) -> FetchedResponse:
        """What is at an address of the origin."""
        try:
            for _ in range(MAX_REDIRECTS + 1):
                answer = self._ask(url)
                if isinstance(answer, FetchedResponse):
                    return answer
                url = answer
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
            raise WirebookError(_failed(url, str(error) or type(error).__name__)) from None
        raise WirebookError(_failed(url, f"more than {MAX_REDIRECTS} redirects"))

    def _ask(self, url: str) -> FetchedResponse | str:
        """The answer, or the address it redirects to."""
        self._check_origin(url)
        self.requests += 1
        self._check(self.requests, self.limits.requests, "requests")
        known = self.cache.get(url)
        with self.client.stream("GET", url, headers=_if_changed(known)) as response:
            if known and response.status_code == httpx.codes.NOT_MODIFIED:
                return known
            if response.is_redirect:
                return str(httpx.URL(url).join(response.headers.get("location", "")))
            if not response.is_success:
                told = f"the server answers {response.status_code}{_title(self._read(response))}"
                raise WirebookError(_failed(url, told, response.status_code))
            body = self._read(response)
        following = response.links.get("next", {}).get("url")
        media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        following = str(httpx.URL(url).join(following)) if following else None
        answer = FetchedResponse(url, body, media_type, following, response.headers.get("etag"))
        if answer.tag:
            self.cache[url] = answer
        return answer

    def _read(self, response: httpx.Response) -> bytes:
        chunks: list[bytes] = []
        for chunk in response.iter_bytes():
            self.size += len(chunk)
            self._check(self.size, self.limits.size, "bytes")
            self._check_time()
            chunks.append(chunk)
        return b"".join(chunks)

    # -- limits -------------------------------------------------------------------------------------------------

    def _check_origin(self, url: str) -> None:
        self._check_time()
        if not self.same_origin(url):
            message = f"'{url}' is not on the origin of '{self.url}' and is not asked"
            raise WirebookError(Problem(code="fetch-failed", message=message, file=self.url, actual=url))

    def _check_time(self) -> None:
        if time.monotonic() > self.deadline:
            self._stop(self.limits.seconds, "seconds")

    def _check(self, found: int, allowed: int, unit: str) -> None:
        if found > allowed:
            self._stop(allowed, unit)

    def _stop(self, allowed: float, unit: str) -> None:
        message = f"'{self.url}' takes more than {allowed:g} {unit}"
        raise WirebookError(Problem(code="fetch-limit", message=message, file=self.url, expected=f"{allowed:g} {unit}"))


def _title(body: bytes) -> str:
    """What an error says of itself, if it is one of xRegistry."""
    try:
        title = json.loads(body)["title"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return ""
    return f": {title[:200]}" if isinstance(title, str) else ""


def _if_changed(known: FetchedResponse | None) -> dict[str, str]:
    return {"If-None-Match": known.tag} if known and known.tag else {}


def _failed(url: str, reason: str, status: int | None = None) -> Problem:
    return Problem(code="fetch-failed", message=f"'{url}': {reason}", file=url, actual=status)
