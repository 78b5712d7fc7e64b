"""Randomly mutated vectors: loading and lint never raise unexpected errors.

Whatever comes out is a registry whose upgrade, upgraded again, stays what it is.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from wirebook.catalog.load import load_registry
from wirebook.catalog.upgrade import render_document, upgrade
from wirebook.definitions.lint.registry import lint
from wirebook.problems import WirebookError

FOLDER = Path(__file__).resolve().parent.parent / "vectors" / "documents"
PLACES = {"message": ("messagegroups", "g", "messages", "m"), "endpoint": ("endpoints", "e"), "document": ()}
JUNK: list[Any] = [
    None, 0, 1.5, True, "", [], {}, "x", "{a}", "None", "\0", 10**30, "/messagegroups/g/messages/m", [None],
    "#/messagegroups/g/messages/m", [[]], {"value": None}, {"value": {"value": 1}}, {"type": []}, {"name": []},
    [{"name": 1}], {"": ""}, {"uri": 5},
]  # fmt: skip


def documents() -> Iterator[dict[str, Any]]:
    for file in ("texts.json", "dialects.json", "lint.json", "resolution.json"):
        for vector in json.loads((FOLDER / file).read_text("utf-8"))["vectors"]:
            kind = next(name for name in PLACES if name in vector)
            document = vector[kind]
            for name in reversed(PLACES[kind]):
                document = {name: document}
            yield document


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    for token, item in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield (*path, token)
        yield from paths(item, (*path, token))


DOCUMENTS = list(documents())
NAMES = [token for document in DOCUMENTS for path in paths(document) for token in path[-1:] if isinstance(token, str)]


def mutate(document: Any, chance: random.Random) -> None:
    """Replace a value, add a member, or rename one."""
    candidates = list(paths(document))
    if not candidates:
        return
    path, inner = chance.choice(candidates), document
    for token in path[:-1]:
        inner = inner[token]
    kind = chance.random()
    if kind < 0.5 or not isinstance(inner, dict):
        inner[path[-1]] = copy.deepcopy(chance.choice(JUNK))
    elif kind < 0.7:
        inner[chance.choice(NAMES)] = copy.deepcopy(chance.choice(JUNK))
    else:
        inner[chance.choice(NAMES)] = inner.pop(path[-1])


@pytest.mark.parametrize("seed", range(8))
def test_mutated_document_never_raises(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(150):
        document = copy.deepcopy(chance.choice(DOCUMENTS))
        for _ in range(chance.randint(1, 4)):
            mutate(document, chance)
        before = json.dumps(document)
        try:
            registry = load_registry(document)
        except WirebookError:
            continue
        assert json.dumps(document) == before
        assert all(problem.code and problem.message for problem in lint(registry))
        once = render_document(upgrade(registry)[0])
        assert render_document(upgrade(load_registry(json.loads(once)))[0]) == once, before
