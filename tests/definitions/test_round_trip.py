"""Templates and filters are one thing: over definitions drawn at random, what is built gives its context back.

A builder may refuse a context, with a reason; what it builds must be read as it was meant, unless it says that the
placeholders could be split in another way.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from wirebook.bindings import to_line
from wirebook.catalog import Catalog
from wirebook.definitions.build.request import BuildRequest, Built
from wirebook.problems import CODES

XID = "/messagegroups/g/messages/m"
NAMES = ("a", "b", "c1", "D_d")
LITERAL = st.text("abcXYZ019-_.", min_size=1, max_size=4)
REFUSALS = {
    "illegal-character",
    "placeholder-conflict",
    "context-changed",
    "too-large",
    "wrong-type",
    "template-mismatch",
}
SAFE = st.text("abcdefgxyzABC0123456789", min_size=1, max_size=8)
ANY = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8) | st.text(
    "/%+#.*> {}~-é 😀", min_size=1, max_size=4
)


def placeholder() -> st.SearchStrategy[str]:
    return st.sampled_from(NAMES).map(lambda name: f"{{{name}}}")


def templates(separator: str, prefix: str = "") -> st.SearchStrategy[str]:
    """A few segments; in each one placeholder, with or without literals around it, or two with a literal between."""
    literal = LITERAL.filter(lambda text: separator not in text)
    one = st.tuples(st.just("") | literal, placeholder(), st.just("") | literal).map("".join)
    two = st.tuples(placeholder(), literal, placeholder()).map("".join)
    segments = st.lists(literal | one | two, min_size=1, max_size=3).map(separator.join)
    return (segments | placeholder()).map(lambda text: prefix + text)


TEXTS, URIS = templates("/"), templates("/") | templates("/", "https://h/") | templates("/", "/")
HEADERS = st.lists(st.fixed_dictionaries({"name": st.sampled_from(["x-a", "x-b", "x-c"]), "value": TEXTS}), max_size=2)


def by_name(entries: list[dict[str, str]]) -> dict[str, str]:
    return {entry["name"]: entry["value"] for entry in entries}


OPTIONS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "HTTP": st.fixed_dictionaries(
        {},
        optional={
            "path": templates("/", "/"),
            "query": HEADERS.map(by_name).map(lambda query: {name: {"value": value} for name, value in query.items()}),
            "headers": HEADERS,
        },
    ),
    "KAFKA": st.fixed_dictionaries(
        {}, optional={"topic": st.just("topic") | placeholder(), "key": TEXTS, "headers": HEADERS.map(by_name)}
    ),
    "MQTT/3.1.1": st.fixed_dictionaries({"topic_name": templates("/")}),
    "MQTT/5.0": st.fixed_dictionaries(
        {"topic_name": templates("/")}, optional={"response_topic": templates("/"), "user_properties": HEADERS}
    ),
    "AMQP/1.0": st.fixed_dictionaries(
        {},
        optional={
            "properties": st.fixed_dictionaries(
                {},
                optional={
                    "to": URIS.map(lambda text: {"value": text}),
                    "subject": TEXTS.map(lambda text: {"value": text}),
                    "message-id": TEXTS.map(lambda text: {"value": text}),
                },
            ),
            "application-properties": HEADERS.map(by_name).map(
                lambda values: {name: {"value": value} for name, value in values.items()}
            ),
        },
    ),
    "NATS": st.fixed_dictionaries(
        {"subject": templates(".")}, optional={"reply-to": templates("."), "headers": HEADERS}
    ),
}
METADATA = st.fixed_dictionaries(
    {"type": st.just({"value": "t"})},
    optional={
        "source": URIS.map(lambda text: {"type": "uritemplate", "value": text}),
        "subject": TEXTS.map(lambda text: {"value": text}),
        "id": TEXTS.map(lambda text: {"value": text}),
        "ext": TEXTS.map(lambda text: {"value": text}),
        "dataschema": templates("/", "https://h/").map(lambda text: {"type": "uritemplate", "value": text}),
    },
)


@st.composite
def definitions(draw: st.DrawFn, protocol: str) -> dict[str, Any]:
    found: dict[str, Any] = {"messageid": "m", "protocol": protocol, "protocoloptions": draw(OPTIONS[protocol])}
    if draw(st.booleans()):
        found |= {"envelope": "CloudEvents/1.0", "envelopemetadata": draw(METADATA)}
        mode = draw(st.sampled_from([None, "binary", "structured"] if protocol != "MQTT/3.1.1" else [None]))
        found |= {"envelopeoptions": {"mode": mode}} if mode else {}
    return found


def built(definition: dict[str, Any], context: dict[str, str]) -> tuple[Catalog, Built, dict[str, str]]:
    catalog = Catalog.load({"messagegroups": {"g": {"messagegroupid": "g", "messages": {"m": definition}}}})
    needed = {name: context[name] for name in catalog.definitions[XID].placeholders}
    attributes = {"source": "/s"} if "source" not in definition.get("envelopemetadata", {"source": 0}) else {}
    return catalog, catalog.try_build(XID, BuildRequest(needed, None, attributes), b"data"), needed


def check(definition: dict[str, Any], context: dict[str, str]) -> Built:
    catalog, result, needed = built(definition, context)
    if result.wire is None:
        return result
    outcome = catalog.match(to_line(result.wire))
    assert (outcome.outcome, outcome.definition) == ("matched", XID), outcome.problems
    assert outcome.ambiguous_bindings == ("ambiguous-bindings" in codes(result))
    assert outcome.ambiguous_bindings or dict(outcome.bindings) == needed
    return result


def codes(result: Built) -> set[str]:
    return {problem.code for problem in result.problems}


@pytest.mark.parametrize("protocol", OPTIONS)
@settings(max_examples=150)
@given(data=st.data())
def test_any_context_is_read_back_or_rejected(protocol: str, data: st.DataObject) -> None:
    """What is built gives its context back; what is not has a reason."""
    definition = data.draw(definitions(protocol))
    context = data.draw(st.fixed_dictionaries(dict.fromkeys(NAMES, ANY)))
    result = check(definition, context)
    event("built" if result.wire is not None else "refused")
    if result.wire is None:
        assert {problem.code for problem in result.errors} <= REFUSALS, result.problems


@pytest.mark.parametrize("protocol", OPTIONS)
@settings(max_examples=150)
@given(data=st.data())
def test_plain_context_is_always_built(protocol: str, data: st.DataObject) -> None:
    definition = data.draw(definitions(protocol))
    context = data.draw(st.fixed_dictionaries(dict.fromkeys(NAMES, SAFE)))
    result = check(definition, context)
    if result.wire is None:  # a conflict is possible where a context is split in another way by each of two slots
        assert {problem.code for problem in result.errors} == {"placeholder-conflict"}, result.problems


def test_rejections_have_problem_codes() -> None:
    assert set(CODES) >= REFUSALS
