"""Templates: vectors, joint solving, round trips, and adversarial texts that only have to end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirebook.definitions.compile import uritemplate as t

VECTORS = json.loads((Path(__file__).parent.parent / "vectors/message/templates.json").read_text())
PLACES = {place.name: place for place in (t.TEXT, t.URI, t.PATH, t.QUERY, t.MQTT_TOPIC, t.NATS_SUBJECT)}


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: f"{v['template']} ~ {v['text']}")
def test_template_vector(vector: dict[str, Any]) -> None:
    template = t.parse_template(vector["template"], PLACES[vector.get("place", "text")])
    split = template.match(vector["text"])
    captured = None if split is None else bindings(template, split)
    assert captured == vector["bindings"]
    if "unique" in vector:
        assert split is not None
        assert split.unique is vector["unique"]


def bindings(template: t.Template, split: t.Split) -> dict[str, str]:
    return {name: template.bind(name, raw).value for name, raw in zip(template.names, split.captures, strict=True)}


def solved(*slots: tuple[str, str, t.TemplateContext]) -> t.Solution:
    """Each slot is (template, text, place), named by its number."""
    units = []
    for number, (template, text, place) in enumerate(slots):
        units += t.units_of(str(number), t.parse_template(template, place), text)
    return t.solve(units)


def test_ambiguous_split_is_decided_by_another_slot() -> None:
    solution = solved(("{tenant}-{device}", "a-b-c", t.TEXT), ("{tenant}/{device}", "a-b/c", t.URI))
    assert not solution.ambiguous
    assert solution.bindings(["0", "1"]) == {"tenant": "a-b", "device": "c"}


def test_undecided_split_is_ambiguous() -> None:
    solution = solved(("{tenant}-{device}", "a-b-c", t.TEXT))
    assert solution.ambiguous
    assert solution.bindings(["0"]) == {"tenant": "a", "device": "b-c"}


def test_different_values_of_one_name_conflict() -> None:
    solution = solved(("{id}", "1", t.TEXT), ("x/{id}", "x/2", t.TEXT))
    assert solution.conflict == t.PlaceholderConflict("id", "0", "1", "1", "2")


def test_values_in_uris_compare_decoded() -> None:
    solution = solved(("/t/{id}", "/t/a%20b", t.URI), ("{id}", "a b", t.TEXT))
    assert solution.conflict is None
    assert solution.bindings(["0", "1"]) == {"id": "a b"}


def test_repeated_name_has_one_value() -> None:
    assert solved(("{a}-{a}", "x-x", t.TEXT)).conflict is None
    assert solved(("{a}-{a}", "x-y", t.TEXT)).conflict is not None


VALUES = st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=20)


@given(VALUES, VALUES)
def test_embedded_uri_placeholder_is_read_back(first: str, second: str) -> None:
    template = t.parse_template("/a/{x}/b/{y}", t.URI)
    split = template.match(template.expand({"x": first, "y": second}))
    assert split is not None
    assert bindings(template, split) == {"x": first, "y": second}


@given(
    st.lists(st.sampled_from(["{a}", "{b}", "-", ".", "x", "/"]), min_size=1, max_size=12),
    st.text("ab-./x", max_size=30),
)
def test_captures_rebuild_the_text(parts: list[str], text: str) -> None:
    template = t.parse_template("".join(parts))
    split = template.match(text)
    if split is None:
        return
    values = iter(split.captures)
    assert t.PLACEHOLDER.sub(lambda _: next(values), template.text) == text


@given(
    st.lists(st.sampled_from(["{a}", "{b}", "x", "/", ".", "#", "\n", "\0", "\\", "]"]), min_size=1, max_size=9),
    st.text("x/.#\n\0\\]", max_size=12),
    st.sampled_from([*PLACES.values()]),
)
def test_regular_expression_agrees_with_scan(parts: list[str], text: str, place: t.TemplateContext) -> None:
    template = t.parse_template("".join(parts), place)
    for _ in range(t.COMPILED_AFTER):
        template.match(text)
    for candidate in (text, template.expand({"a": text[:3], "b": text[3:]}, encoding="raw")):
        assert template.match(candidate) == template.match_by_segments(candidate)


@pytest.mark.parametrize("char", ["-", "a", "%", "/", "-a"])
def test_adversarial_text_is_matched_in_bounded_time(char: str) -> None:
    template = t.parse_template("".join(f"{{p{number}}}-" for number in range(20)) + "z")
    assert template.match(char * 10_000) is None
    plain = t.parse_template("/".join(f"a{{p{number}}}" for number in range(20)) + "/z")
    assert plain.pattern is not None
    for _ in range(t.COMPILED_AFTER + 1):
        assert plain.match(char * 10_000) is None
    again = t.parse_template("".join(f"{{p{number}}}-" for number in range(20)) + "a")
    again.match("-" * 10_000 + "a")
    solved((again.text, "x-" * 5_000 + "a", t.TEXT), (again.text, "x-" * 5_000 + "a", t.TEXT))


def test_lone_surrogate_is_percent_encoded() -> None:
    assert t.percent_encode("a\ud800 b") == "a%ED%A0%80%20b"
