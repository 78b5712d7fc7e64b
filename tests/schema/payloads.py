"""Payloads for tests: valid ones made from schemas, and functions that break them."""

from __future__ import annotations

import copy
import json
from functools import cache
from random import Random
from typing import Any

from hypothesis import Phase, find, settings
from hypothesis import strategies as st

from wirebook.text.pointers import resolve

Node = dict[str, Any]
TEXTS = ("abc", "", "é€😀", "2024-01-01", "x" * 30, 'a"b\\c', "\u2028")
SAMPLES: dict[str, tuple[Any, ...]] = {
    "string": TEXTS,
    "double": (0, 1, -1.5, 3.25, 1e10, 52, 90, -0.0, 1e300, 2**53 + 1),
    "float": (0, 1, -1.5, 3.25, 1e10),
    "int32": (0, 1, 5, -1, 2**31 - 1),
    "integer": (0, 1, 5, -1, 2**31 - 1),
    "int64": ("0", "1700000000000", "-5", "9223372036854775807", "-0"),
    "boolean": (True, False),
    "datetime": ("2024-05-01T12:00:00Z", "2024-05-01T12:00:00.123+02:00", "2024-05-01T12:00:00.123456789Z"),
    "uri": ("https://example.com/a?b#c",),
    "null": (None,),
    "any": (None, 1, [1, {"a": None}], "x"),
}
JUNK: tuple[Any, ...] = (None, True, 1, 1.0, 1.5, "x", "5", [], {}, -1, 2**70, "2024-13-01T00:00:00Z", [1], {"a": 1})


def find_texts(node: Any) -> None:
    """Find a text for every pattern in a schema, which is too slow inside a property test."""
    if isinstance(node, dict):
        if isinstance(node.get("pattern"), str):
            text_of(node["pattern"])
        for member in node.values():
            find_texts(member)


@cache
def text_of(pattern: str) -> str:
    """Return a text that a pattern matches."""
    anchored = pattern[:-1] + r"\Z" if pattern.endswith("$") else pattern
    quick = settings(phases=[Phase.generate], database=None)
    return str(find(st.from_regex(anchored), lambda _: True, settings=quick))


def structure_payload(document: Node, random: Random, node: Node | None = None) -> Any:
    """Return a payload that a JSON Structure document allows."""
    node = document if node is None else node
    if "type" not in node and "$root" in node:
        return structure_payload(document, random, resolve(document, node["$root"]))
    type_ = node.get("type")
    reference = node.get("$ref") or (type_.get("$ref") if isinstance(type_, dict) else None)
    if reference:
        return structure_payload(document, random, resolve(document, reference))
    if isinstance(type_, list):
        branch = random.choice(type_)
        return structure_payload(document, random, branch if isinstance(branch, dict) else {"type": branch})
    if "enum" in node:
        return random.choice(node["enum"])
    return _compound(document, random, node) if type_ not in SAMPLES else _scalar(random, node)


def _scalar(random: Random, node: Node) -> Any:
    if "pattern" in node:
        return text_of(node["pattern"])
    if "minimum" in node or "maximum" in node:
        low = float(node.get("minimum", -1000))
        number = random.uniform(low, float(node.get("maximum", max(1000.0, low + 1000))))
        whole = "int" in node["type"]
        return str(int(number)) if node["type"] == "int64" else (int(number) if whole else number)
    samples = SAMPLES[node["type"]]
    return random.choice(
        [sample for sample in samples if not isinstance(sample, str) or len(sample) >= node.get("minLength", 0)]
    )


def _compound(document: Node, random: Random, node: Node) -> Any:
    def make(type_: Node) -> Any:
        return structure_payload(document, random, type_)

    if node["type"] == "object":
        required = node.get("required", ())
        members = node.get("properties", {})
        return {name: make(member) for name, member in members.items() if name in required or random.random() < 0.7}
    if node["type"] in ("array", "set"):
        return [make(node["items"]) for _ in range(random.randint(0, 3))]
    if node["type"] == "map":
        return {key: make(node["values"]) for key in random.sample(["a", "b", "c-d"], 2)}
    name = random.choice(list(node["choices"]))
    return {name: make(node["choices"][name])}


def broken(value: Any, random: Random) -> Any:
    """Return a copy of a value with one random change."""
    value = copy.deepcopy(value)
    if isinstance(value, dict) and value:
        name, chance = random.choice(list(value)), random.random()
        if chance < 0.2:
            del value[name]
        elif chance < 0.35:
            value["undeclared"] = random.choice(JUNK)
        else:
            inner = isinstance(value[name], dict | list) and chance < 0.7
            value[name] = broken(value[name], random) if inner else random.choice(JUNK)
        return value
    if isinstance(value, list) and value:
        place = random.randrange(len(value))
        value[place] = broken(value[place], random)
        return value
    return random.choice(JUNK)


def text(value: Any, random: Random) -> bytes:
    """Return the JSON text of a value, in one of the ways that people write it."""
    indent, ascii_ = random.choice([None, None, 2]), random.random() < 0.5
    return json.dumps(value, ensure_ascii=ascii_, indent=indent).encode()


def damaged(data: bytes, random: Random) -> bytes:
    """Return bytes with one or two random changes."""
    octets = bytearray(data)
    for _ in range(random.randint(1, 2)):
        place, chance = random.randrange(len(octets) + 1), random.random()
        if chance < 0.6 and place < len(octets):
            octets[place] = random.choice([0, 1, 2, 3, 4, 0x22, 0x2C, 0x7D, 0x7F, 0x80, 0xFF, random.randrange(256)])
        elif chance < 0.8 and place < len(octets):
            del octets[place]
        else:
            octets.insert(place, random.randrange(256))
    return bytes(octets)
