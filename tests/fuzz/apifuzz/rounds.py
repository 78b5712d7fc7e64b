"""Rounds of random requests. Each round has its own registry and seed, so that it can be repeated alone."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from synthesis.dice import dice_of

from apifuzz import requests
from apifuzz.rules import SLOW, broken_rules
from apifuzz.wire import Connection, Reply, Request
from wirebook.core.model.compiled import Model, compile_model

SIZE = 250
"""Requests of a round."""

LOCKED = b"#not_available"
"""How a change of capabilities is refused that cannot be changed any more."""


@dataclass(frozen=True)
class Finding:
    """A rule that was broken; `where` says how to do it again."""

    fault: str
    request: str
    answer: str
    where: str

    def __str__(self) -> str:
        return f"{self.fault}\n  {self.where}\n  {self.request[:3000]}\n  {self.answer[:800]}"


@dataclass
class Tally:
    """What was sent so far."""

    statuses: Counter[int] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    slowest: float = 0.0

    @property
    def requests(self) -> int:
        return self.statuses.total()

    def note(self, method: str, asked: str, reply: Reply, where: str) -> None:
        self.statuses[reply.status] += 1
        self.slowest = max(self.slowest, reply.seconds)
        for fault in broken_rules(method, reply.status, reply.headers, reply.body, reply.seconds):
            answer = f"{reply.status} {reply.body.decode(errors='replace')}"
            self.findings.append(Finding(fault, asked, answer, where))


@dataclass
class Rounds:
    """Sends rounds to the registry at `base`, which is emptied before each."""

    base: str
    models: tuple[dict[str, Any], ...]
    tally: Tally = field(default_factory=Tally)

    def run(self, seed: int, numbers: Iterator[int], count: int, say: Callable[[str], None]) -> None:
        """Rounds until `wanted` requests were sent, the server is gone, or its registry cannot be used again."""
        for number in numbers:
            if self.tally.requests >= count or not self.round(seed, number):
                return
            if number % 20 == 19:
                say(f"{self.tally.requests} requests of our own, {len(self.tally.findings)} findings")

    def begin(self, model: int) -> None:
        """An empty registry with one of the models."""
        connection = Connection(self.base, SLOW * 3)
        self._fresh(connection, self.models[model], "the beginning")
        connection.close()

    def round(self, seed: int, number: int) -> bool:
        """One round; whether there can be another."""
        where = f"--seed {seed} --round {number}"
        connection = Connection(self.base, SLOW * 3)
        dice = dice_of(f"{seed}/{number}")
        model = self._fresh(connection, self.models[number % len(self.models)], where)
        for _ in range(SIZE if model is not None else 0):
            assert model is not None
            request = requests.request(model, dice)
            self.tally.note(request.method, request.curl(self.base), connection.send(request), where)
        usable = self._has_its_capabilities(connection, where)
        if model is not None and usable:
            self._check_export(connection, model, where)
        alive = connection.send(Request("GET", "/healthz")).status == 200
        connection.close()
        return alive and usable

    def _has_its_capabilities(self, connection: Connection, where: str) -> bool:
        """Whether the registry has all that is offered, again. One whose capabilities were made immutable never will."""
        request = Request("PATCH", "/", (), b'{"capabilities": null}')
        reply = connection.send(request)
        self.tally.note(request.method, request.curl(self.base), reply, where)
        if reply.status != 200 and LOCKED not in reply.body:
            self.tally.findings.append(Finding("no fresh start", request.curl(self.base), reply.body.decode(), where))
        return reply.status == 200

    def _check_export(self, connection: Connection, model: Model, where: str) -> None:
        """What is there is whole: an export can be sent to a registry without entities, which then exports the same."""
        first = self._must(connection, "GET", "/export?binary", None, where)
        for plural, type_ in model.groups.items():
            self._must(connection, "DELETE", f"/{plural}", None, where)
            for group in first.get(plural, {}).values():
                for resource in type_.resources.values():
                    # Ids of Versions that are the server's cannot be sent; constraints fill in what was not there.
                    if not resource.setversionid or "constraints" in group:
                        group |= {resource.plural: {}, f"{resource.plural}count": 0}
        self._must(connection, "PUT", "/?ignore=epoch,readonly", first, where)
        second = self._must(connection, "GET", "/export?binary", None, where)
        for place in islice(differences(first, second), 3):
            self.tally.findings.append(Finding("an import exports something else", "GET /export", place, where))

    def _fresh(self, connection: Connection, source: dict[str, Any], where: str) -> Model | None:
        """The registry without entities, with all that is offered, and with a model."""
        self._must(connection, "PATCH", "/", {"capabilities": None}, where)
        for plural in self._must(connection, "GET", "/model", None, where).get("groups", {}):
            self._must(connection, "DELETE", f"/{plural}", None, where)
        self._must(connection, "PUT", "/modelsource", source, where)
        full = self._must(connection, "GET", "/model", None, where)
        return compile_model(full) if full else None

    def _must(self, connection: Connection, method: str, path: str, value: Any, where: str) -> dict[str, Any]:
        body = b"" if value is None else json.dumps(value).encode()
        request = Request(method, path, (), body)
        reply = connection.send(request)
        self.tally.note(method, request.curl(self.base), reply, where)
        if not 200 <= reply.status < 300:
            self.tally.findings.append(
                Finding("no fresh start", request.curl(self.base), reply.body.decode()[:500], where)
            )
        parsed = json.loads(reply.body or b"{}")
        return parsed if isinstance(parsed, dict) else {}


COUNTED = ("epoch", "modifiedat")
"""What a write changes by itself."""


def differences(first: Any, second: Any, place: str = "") -> Iterator[str]:
    """The places at which two exports differ."""
    if isinstance(first, dict) and isinstance(second, dict):
        for name in sorted({*first, *second} - set(COUNTED)):
            yield from differences(first.get(name), second.get(name), f"{place}/{name}")
    elif first != second:
        yield f"{place}: {json.dumps(first)[:200]} became {json.dumps(second)[:200]}"
