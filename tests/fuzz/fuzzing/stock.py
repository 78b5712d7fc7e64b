"""The catalogues, messages and documents from which several kinds of input are generated."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from synthesis.dice import Dice, dice_of
from synthesis.messages import Message, message_of, ways_of
from synthesis.rich import PARTS, rich_catalogue

from wirebook.catalog import Catalog
from wirebook.definitions.match.options import MatchOptions
from wirebook.problems import WirebookError

ROOT = Path(__file__).resolve().parents[3]
SHARED = ROOT.parent / "shared" / "corpus"
VECTORS = ROOT / "tests" / "vectors"
POOL = 40
SMALL = 60_000  # bytes of a document that is small enough to be spoiled often


@cache
def documents() -> tuple[tuple[str, Any], ...]:
    """Catalogues that exist: of the corpus where it is there, the examples, and the small ones of the vectors."""
    files = [
        *SHARED.glob("production/*.json"),
        *SHARED.glob("spec-scenarios/*.json"),
        *ROOT.glob("docs/examples/*.json"),
    ]
    files += ROOT.glob("src/wirebook/demo/catalogue/*.json")
    named = [
        (file.name, json.loads(file.read_bytes()))
        for file in sorted(files, key=lambda file: file.name)
        if file.stat().st_size < SMALL
    ]
    for file in sorted((VECTORS / "matching").glob("*.json")):
        catalogues_ = json.loads(file.read_bytes()).get("catalogues", {})
        named += [(f"{file.name} {name}", document) for name, document in catalogues_.items()]
    for file in sorted((VECTORS / "documents").glob("*.json")):
        for vector in json.loads(file.read_bytes()).get("vectors", ()):
            named += [(f"{file.name} {vector.get('name')}", document) for document in _documents_of(vector)]
    return tuple(named)


def _documents_of(vector: dict[str, Any]) -> list[Any]:
    """The document of a vector; of one that has only a message or an endpoint, one around it."""
    places = {"message": ("messagegroups", "g", "messages", "m"), "endpoint": ("endpoints", "e"), "document": ()}
    documents_ = []
    for kind, names in places.items():
        document = vector.get(kind)
        if isinstance(document, dict):
            for name in reversed(names):
                document = {name: document}
            documents_.append(document)
    return documents_


def catalogues() -> tuple[str, ...]:
    """Names of catalogues that messages are made for."""
    return (*PARTS, "orders", "native", *(name for name, _ in documents() if name.endswith(".xreg.json")))


@cache
def catalog(name: str) -> Catalog:
    if name in PARTS:
        return Catalog.load(rich_catalogue(name), options=MatchOptions(confluent_prefix="json" not in name))
    if name in ("orders", "native"):
        path = ROOT / "src" / "wirebook" / "demo" / "catalogue" / "orders.xreg.json"
        return Catalog.load(path, options=MatchOptions(accept_native=name == "native"))
    return Catalog.load(dict(documents())[name])


@cache
def messages(name: str) -> tuple[Message, ...]:
    """Messages that definitions of the catalogue describe: always the same ones, as drawing them takes long."""
    loaded, dice = catalog(name), dice_of(f"stock {name}", strangeness=0.3)
    usable = [definition for definition in loaded.definitions.values() if not definition.incomplete]
    messages_ = []
    for definition in dice.choices(usable, k=POOL):
        with suppress(WirebookError):  # a few cannot be built at random
            messages_.append(message_of(loaded, definition, dice.choice(list(ways_of(definition))), dice))
    return tuple(messages_)


def message(name: str, dice: Dice) -> Message:
    return dice.choice(messages(name) or messages("orders"))
