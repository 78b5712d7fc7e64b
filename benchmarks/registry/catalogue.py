"""The content of the measured registries: Groups of messages of about 800 bytes of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

SIZE = 800
BATCH = 10_000
"""Messages per import request."""


def message(number: int) -> dict[str, Any]:
    """A typical definition, with a description that pads it to `SIZE` bytes."""
    definition: dict[str, Any] = {
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
    definition["description"] = "x" * max(SIZE - len(json.dumps(definition)) - len(', "description": ""'), 1)
    return definition


@dataclass(frozen=True)
class Catalogue:
    """`messages` messages in `groups` Groups; message n is in Group n modulo `groups`."""

    messages: int
    groups: int

    def path(self, number: int) -> str:
        return f"/messagegroups/g{number % self.groups}/messages/m{number}"

    def bodies(self) -> Iterator[tuple[int, bytes]]:
        """The import requests: the number of messages and the body for POST /."""
        for first in range(0, self.messages, BATCH):
            numbers = range(first, min(first + BATCH, self.messages))
            groups: dict[str, dict[str, dict[str, Any]]] = {}
            for number in numbers:
                group = groups.setdefault(f"g{number % self.groups}", {"messages": {}})
                group["messages"][f"m{number}"] = message(number)
            yield len(numbers), json.dumps({"messagegroups": groups}).encode()
