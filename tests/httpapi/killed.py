"""Writes to a server that is killed, and checks what is stored afterwards.

Each client has Groups of its own, one request after the other, so that it knows what must be there: what the last
request that was answered left. The one that was not answered may have been done, or not; nothing between. All clients
share one more Group, which each answered request gives another epoch.
"""

from __future__ import annotations

import base64
import json
import random
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

import httpx

MODEL: Final[dict[str, Any]] = {
    "groups": {
        "dirs": {
            "singular": "dir",
            "attributes": {"number": {"type": "integer"}},
            "resources": {
                "files": {
                    "singular": "file",
                    "hasdocument": False,
                    "maxversions": 0,
                    "attributes": {"number": {"type": "integer"}},
                },
                "papers": {"singular": "paper"},
            },
        }
    }
}
SHARED: Final = "/dirs/shared"
CORRELATION: Final = "xRegistry-xregcorrelationid"
BULK: Final = tuple(f"f{place}" for place in range(30))
"""Files of a tree, each with two Versions: what one request writes together."""


@dataclass(frozen=True)
class State:
    """A Group: the number that all of its tree has (None if it is not there), those of the Versions of its log, in
    order, and that of its document."""

    number: int | None = None
    log: tuple[int, ...] = ()
    document: int | None = None


@dataclass(frozen=True)
class Step:
    """A request, and what it makes of a Group."""

    method: str
    path: str
    content: bytes | None
    after: State


@dataclass
class Group:
    """A Group of one client: what it was when a request was last answered, the request that was not, and what was seen
    of it since, or why it is none that a request could have left."""

    path: str
    known: State = field(default_factory=State)
    open: Step | None = None
    seen: State | str | None = None

    @property
    def possible(self) -> tuple[State, ...]:
        return (self.known, self.open.after) if self.open else (self.known,)


def next_step(group: Group, number: int, rng: random.Random) -> Step:
    """Some request for a Group; `number` is one that no other has."""
    path, known = group.path, group.known
    if known.number is None or rng.random() < 0.3:
        return Step("PUT", path, json.dumps(tree(number)).encode(), replace(known, number=number))
    if rng.random() < 0.2:
        return Step("DELETE", path, None, State())
    if rng.random() < 0.5:
        content = json.dumps({"number": number}).encode()
        return Step("POST", f"{path}/files/log", content, replace(known, log=(*known.log, number)))
    return Step("PUT", f"{path}/papers/paper", document(number), replace(known, document=number))


def tree(number: int) -> dict[str, Any]:
    versions = {"v1": {"number": number}, "v2": {"number": number}}
    return {"number": number, "files": {id_: {"versions": versions} for id_ in BULK}}


def document(number: int) -> bytes:
    return f"{number} ".encode() * 2000


# -- writing -------------------------------------------------------------------------------------------------------


class Writer(threading.Thread):
    """A client that writes until its server is gone, or `ending` is set.

    `correlations` are those of the requests that were answered, `epochs` those that the shared Group was given, and
    `unknown` says how many requests for it were not answered. `refused` is an answer that should not be.
    """

    def __init__(self, base: str, groups: list[Group], seed: int, first: int) -> None:
        super().__init__(daemon=True)
        self.base, self.groups = base, groups
        self.rng, self.number = random.Random(seed), first
        self.correlations: set[str] = set()
        self.epochs: list[int] = []
        self.unknown = 0
        self.refused: str | None = None
        self.ending = threading.Event()
        self.start()

    def run(self) -> None:
        try:
            with httpx.Client(base_url=self.base, timeout=60, trust_env=False) as client:
                while not self.ending.is_set() and self.refused is None:
                    self._write(client)
        except httpx.TransportError:  # the server is gone, in the midst of what is open now
            return

    def _write(self, client: httpx.Client) -> None:
        self.number += 1
        if self.rng.random() < 0.2:
            self._share(client)
            return
        group = self.rng.choice(self.groups)
        group.open = step = next_step(group, self.number, self.rng)
        if self._answered(client.request(step.method, step.path, content=step.content)):
            group.known, group.open = step.after, None

    def _share(self, client: httpx.Client) -> None:
        self.unknown += 1
        answer = client.patch(SHARED, json={"number": self.number})
        if self._answered(answer):
            self.epochs.append(answer.json()["epoch"])
            self.unknown -= 1

    def _answered(self, answer: httpx.Response) -> bool:
        if answer.is_success:
            self.correlations.add(answer.headers[CORRELATION])
        else:
            self.refused = f"{answer.request.method} {answer.request.url}: {answer.status_code} {answer.text}"
        return answer.is_success


# -- looking -------------------------------------------------------------------------------------------------------


def look(client: httpx.Client, path: str) -> State | str:
    """What a Group is; or, as text, why it is none that any request could have left."""
    answer = client.get(f"{path}?inline=files.versions,papers.paper")
    if answer.status_code == 404:
        return State()
    group = answer.json()
    files: dict[str, Any] = dict(group.get("files", {}))
    log = files.pop("log", {"versions": {}})["versions"]
    numbers = {
        group["number"],
        *(version["number"] for file in files.values() for version in file["versions"].values()),
    }
    counts = [(len(file["versions"]), file["versionscount"]) for file in files.values()]
    if len(numbers) != 1 or sorted(files) != sorted(BULK) or set(counts) != {(2, 2)}:
        return f"half a tree: the numbers {numbers} in {len(files)} files, with Versions {set(counts)}"
    if group["filescount"] != len(group["files"]) or group["paperscount"] != len(group["papers"]):
        return f"counts that are wrong: {group['filescount']} and {group['paperscount']}"
    ordered = sorted(log.values(), key=lambda version: int(version["versionid"]))
    if [version["versionid"] for version in ordered] != [str(place) for place in range(1, len(ordered) + 1)]:
        return f"Versions with gaps: {sorted(log)}"
    documents = [base64.b64decode(paper["paperbase64"]) for paper in group["papers"].values()]
    number = int(documents[0].split()[0]) if documents else None
    if number is not None and documents != [document(number)]:
        return f"half a document: {len(documents[0])} bytes"
    return State(numbers.pop(), tuple(version["number"] for version in ordered), number)


def check_groups(client: httpx.Client, groups: list[Group]) -> Iterator[str]:
    """What is wrong with Groups."""
    for group in groups:
        group.seen = look(client, group.path)
        if isinstance(group.seen, str):
            yield f"{group.path}: {group.seen}"
        elif group.seen not in group.possible:
            yield f"{group.path}: it is {group.seen}, and should be one of {group.possible}"


def check_shared(epochs: tuple[int, int], writers: list[Writer]) -> Iterator[str]:
    """Whether each answered request gave the shared Group another epoch, between the two that it had and has."""
    answered = [epoch for writer in writers for epoch in writer.epochs]
    unknown = sum(writer.unknown for writer in writers)
    before, now = epochs
    if len(set(answered)) != len(answered):
        yield f"an epoch of {SHARED} was given twice"
    if not before + len(answered) <= now <= before + len(answered) + unknown or now < max(answered, default=0):
        yield f"{SHARED} has the epoch {now}: it was {before}, {len(answered)} were answered, {unknown} were not"


def check_events(client: httpx.Client, last: str, writers: list[Writer], done: int) -> Iterator[str]:
    """Whether the stream after `last` has an interaction for each request that was answered, and for each of those that
    were `done` without an answer."""
    numbers, seen = read_events(client, last)
    answered = {correlation for writer in writers for correlation in writer.correlations}
    if missing := answered - seen:
        yield f"{len(missing)} answered requests have no event"
    if len(seen - answered) != done:
        yield f"{len(seen - answered)} interactions of nobody, where {done} requests were done without an answer"
    if numbers != list(range(int(last) + 1, int(last) + 1 + len(numbers))):
        yield f"the numbers of events have gaps or are in no order: {numbers[:3]}...{numbers[-3:]}"


def read_events(client: httpx.Client, last: str) -> tuple[list[int], set[str]]:
    """The numbers of the interactions after one, and their correlations."""
    numbers: dict[int, None] = {}
    seen: set[str] = set()
    with client.stream("GET", "/.wirebook/events", headers={"Last-Event-ID": last}) as answer:
        for line in answer.iter_lines():
            name, _, value = line.partition(": ")
            if name == "id":
                numbers[int(value.partition("-")[0])] = None
            elif name == "data":
                seen.add(json.loads(value)["xregcorrelationid"])
            elif line.startswith(":"):  # nothing more
                break
    return list(numbers), seen
