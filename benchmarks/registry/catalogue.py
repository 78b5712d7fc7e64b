"""What is put into a registry to be measured: Groups of messages, each of them about 800 bytes of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

SIZE = 800
BATCH = 10_000
"""Messages of one request of the import."""


def message(number: int) -> dict[str, Any]:
    """A definition as an owner of a topic would write it, filled up to its size by its description."""
    made: dict[str, Any] = {
        "name": f"Order {number} placed",
        "labels": {"team": f"team-{number % 50}", "stage": "production" if number % 2 else "test"},
        "envelope": "CloudEvents/1.0",
        "envelopemetadata": {
            "type": {"value": f"com.example.orders.placed.v{number}", "required": True},
            "source": {"value": "/shops/{shop}/orders", "type": "uritemplate", "required": True},
            "subject": {"value": "{order}", "type": "uritemplate"},
        },
        "protocol": "KAFKA",
        "protocoloptions": {"topic": f"orders-{number % 100}", "key": "{order}"},
        "dataschemaformat": "JsonSchema/draft-07",
        "datacontenttype": "application/json",
    }
    made["description"] = "x" * max(SIZE - len(json.dumps(made)) - len(', "description": ""'), 1)
    return made


@dataclass(frozen=True)
class Catalogue:
    """`messages` in `groups`, message number n in group n modulo their number."""

    messages: int
    groups: int

    def path(self, number: int) -> str:
        return f"/messagegroups/g{number % self.groups}/messages/m{number}"

    def bodies(self) -> Iterator[tuple[int, bytes]]:
        """The requests that import it: how many messages each has, and its body for POST /."""
        for first in range(0, self.messages, BATCH):
            numbers = range(first, min(first + BATCH, self.messages))
            groups: dict[str, dict[str, dict[str, Any]]] = {}
            for number in numbers:
                group = groups.setdefault(f"g{number % self.groups}", {"messages": {}})
                group["messages"][f"m{number}"] = message(number)
            yield len(numbers), json.dumps({"messagegroups": groups}).encode()
