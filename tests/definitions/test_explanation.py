"""Explanations agree with `match` on every vector; verdicts, remedies, alignment, and the order of definitions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.definitions.test_vectors import CASES, catalog_of
from wirebook.bindings.attributes import MANDATORY
from wirebook.catalog import Catalog
from wirebook.definitions.compile.uritemplate import MQTT_TOPIC, NATS_SUBJECT, TEXT, TemplateContext, parse_template
from wirebook.definitions.explain.alignment import align
from wirebook.definitions.explain.comparison import SlotReport
from wirebook.definitions.explain.explanation import Comparison, Explanation
from wirebook.definitions.explain.similar_names import nearest_name
from wirebook.definitions.match.options import MatchOptions

Case = dict[str, Any]

# -- agreement with match ---------------------------------------------------------------------------------------------


def explained(case: Case) -> Iterator[tuple[Any, Explanation, str | None]]:
    """Match and explain every message of a vector: with its endpoint, without one, and with every other endpoint."""
    catalog = catalog_of(json.dumps(case["catalogue"]), json.dumps(case.get("options", {})))
    for endpoint in dict.fromkeys((case.get("endpoint"), None, *catalog.scopes)):
        outcomes = catalog.match_each(case["record"], endpoint)
        for outcome, explanation in zip(outcomes, catalog.explain_each(case["record"], endpoint), strict=True):
            yield outcome, explanation, endpoint


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_explanation_of_every_vector_agrees_with_match(case: Case) -> None:
    for outcome, explanation, _ in explained(case):
        assert explanation.outcome.to_dict() == outcome.to_dict()
        assert explanation.reason
        json.dumps(explanation.to_dict(), default=str)
        if outcome.outcome == "unexpected":
            assert_near(outcome, explanation)
        for comparison in explanation.comparisons if outcome.outcome != "unexpected" else ():
            assert not comparison.wrong, "the metadata matches"
        if outcome.matched:
            chosen = next(item for item in explanation.comparisons if item.definition == outcome.definition)
            assert (chosen.role, dict(chosen.bindings)) == ("chosen", dict(outcome.bindings))
            assert chosen.fits


def assert_near(outcome: Any, explanation: Explanation) -> None:
    """The wrong slots include those of `near`, with the same codes.

    There may be more wrong slots only after a wrong selector, or because of conflicting placeholder values.
    """
    assert all(comparison.wrong for comparison in explanation.comparisons), "the metadata does not match"
    comparisons = {comparison.definition: comparison for comparison in explanation.comparisons}
    for near in outcome.near:
        comparison = comparisons[near.definition]
        reported = {(report.slot, report.problem.code) for report in comparison.wrong if report.problem}
        known = {(problem.slot, problem.code) for problem in near.problems}
        selectors = {"wrong-protocol", "wrong-envelope", "wrong-mode"}
        assert reported >= known
        more = {code for _, code in reported - known}
        assert more <= {"placeholder-conflict"} or {code for _, code in known} & selectors


def test_message_over_another_protocol_than_its_endpoint_has_that_reason() -> None:
    catalog = Catalog.load({
        "messagegroups": {"g": {"messages": {"m": {"envelope": "CloudEvents/1.0", "envelopemetadata": {}}}}},
        "endpoints": {"e": {"protocol": "KAFKA", "messagegroups": ["/messagegroups/g"]}},
    })  # fmt: skip
    headers = [[f"ce-{name}", "1" if name == "id" else "1.0" if name == "specversion" else "/s"] for name in MANDATORY]
    explanation = catalog.explain(
        {"protocol": "HTTP", "method": "POST", "headers": headers, "body": ""}, "/endpoints/e"
    )
    assert explanation.reason == "the endpoint's protocol is 'KAFKA', the message came over 'HTTP'"
    assert explanation.comparisons == ()
    advice = "the message matches /messagegroups/g/messages/m without the endpoint '/endpoints/e'"
    assert explanation.advice == (advice,)


def test_mismatch_with_an_endpoint_option_gives_no_advice_for_other_endpoints() -> None:
    catalog = Catalog.load({
        "messagegroups": {"g": {"messages": {"m": {"protocol": "KAFKA", "protocoloptions": {}}}}},
        "endpoints": {
            "e": {"protocol": "KAFKA", "protocoloptions": {"topic": "t"}, "messagegroups": ["/messagegroups/g"]}
        },
    })  # fmt: skip
    explanation = catalog.explain({"protocol": "KAFKA", "topic": "u", "headers": [], "value": "{}"}, "/endpoints/e")
    assert [report.slot for report in explanation.comparisons[0].wrong] == ["endpoint.protocoloptions.topic"]
    assert explanation.advice == ()


def test_outcome_is_explained_like_its_message() -> None:
    """Also for structured events without a content type, whose outcome keeps only the event."""
    for case in CASES:
        catalog = catalog_of(json.dumps(case["catalogue"]), json.dumps(case.get("options", {})))
        for outcome, explanation, endpoint in explained(case):
            explained_outcome = catalog.explainer.explain_outcome(outcome, endpoint)
            assert explained_outcome.to_dict() == explanation.to_dict(), case["name"]


# -- slot by slot -----------------------------------------------------------------------------------------------------

SENSORS = {
    "messagegroups": {
        "g": {
            "messages": {
                "reading": {
                    "envelope": "CloudEvents/1.0",
                    "envelopemetadata": {
                        "type": {"value": "sensor.reading"},
                        "source": {"type": "uritemplate", "value": "/plants/{plant}/lines/{line}"},
                        "subject": {"value": "{line}"},
                        "priority": {"type": "integer", "required": True},
                    },
                    "protocol": "HTTP",
                    "protocoloptions": {"method": "POST", "headers": [{"name": "X-Trace"}]},
                    "dataschemaformat": "JsonSchema/draft-07",
                    "dataschema": {
                        "type": "object",
                        "properties": {
                            "celsius": {"type": "number"},
                            "quality": {"enum": ["good", "poor"]},
                            "unit": {"type": "object", "required": ["name"]},
                        },
                        "required": ["celsius"],
                        "additionalProperties": False,
                    },
                }
            }
        }
    }
}
HEADERS = {
    "ce-specversion": "1.0",
    "ce-id": "1",
    "ce-type": "sensor.reading",
    "ce-source": "/plants/p1/lines/l2",
    "ce-subject": "l2",
    "ce-priority": "3",
    "content-type": "application/json",
}


def post(body: Any = None, **changes: str | None) -> dict[str, Any]:
    """A request that matches, with changed headers; None removes a header."""
    headers = HEADERS | {name.replace("_", "-"): value for name, value in changes.items()}
    pairs = [[name, value] for name, value in headers.items() if value is not None]
    text = json.dumps({"celsius": 1} if body is None else body)
    return {"protocol": "HTTP", "method": "POST", "target": "/", "headers": pairs, "body": text}


def comparison_of(record: dict[str, Any], document: Any = SENSORS) -> Comparison:
    return Catalog.load(document).explain(record).comparisons[0]


def slot(record: dict[str, Any], label: str, document: Any = SENSORS) -> SlotReport:
    return next(report for report in comparison_of(record, document).slots if report.slot == label)


def test_matching_message_fits_every_slot() -> None:
    comparison = comparison_of(post())
    assert {report.verdict for report in comparison.slots} == {"fits", "open"}
    assert comparison.payload is not None
    assert comparison.payload.fits
    assert (comparison.role, comparison.fits) == ("chosen", True)
    assert comparison.bindings == {"plant": "p1", "line": "l2"}


def test_template_with_wrong_level_is_aligned_and_corrected() -> None:
    report = slot(post(ce_source="/plant/p1/lines/l2"), "envelopemetadata.source")
    assert [(part.template, part.value, part.fits) for part in report.parts] == [
        ("", "", True),
        ("plants", "plant", False),
        ("{plant}", "p1", True),
        ("lines", "lines", True),
        ("{line}", "l2", True),
    ]
    assert (report.remedy, report.nearest) == ("set it to '/plants/p1/lines/l2'", "plants")


def test_missing_level_is_filled_from_another_slot() -> None:
    report = slot(post(ce_source="/plants/p1/lines"), "envelopemetadata.source")
    assert [part.template for part in report.parts if not part.fits] == ["{line}"]
    assert report.remedy == "set it to '/plants/p1/lines/l2'"


def test_placeholder_conflict_has_both_remedies() -> None:
    report = slot(post(ce_subject="l3"), "envelopemetadata.subject")
    assert report.problem is not None
    assert report.problem.code == "placeholder-conflict"
    assert report.remedy == "set it to 'l2', or set envelopemetadata.source to 'l3'"


@pytest.mark.parametrize(
    ("changes", "label", "verdict", "remedy", "nearest"),
    [
        ({"ce_priority": "high"}, "envelopemetadata.priority", "wrong", "use an integer", None),
        ({"ce_priority": None}, "envelopemetadata.priority", "wrong", "add ce-priority (integer)", None),
        (
            {"ce_priority": None, "ce_priorty": "3"},
            "envelopemetadata.priority",
            "wrong",
            "rename 'ce-priorty' to 'ce-priority'",
            "ce-priorty",
        ),
        (
            {"ce_priority": None, "cc_priority": "3"},
            "envelopemetadata.priority",
            "wrong",
            "rename 'cc-priority' to 'ce-priority'",
            "cc-priority",
        ),
        (
            {"ce_type": "sensor.raeding"},
            "envelopemetadata.type",
            "wrong",
            "set it to 'sensor.reading'",
            "sensor.reading",
        ),
        (
            {"x_trase": "1"},
            "protocoloptions.headers.X-Trace",
            "open",
            "'x-trase' is not declared; did you mean 'X-Trace'?",
            "x-trase",
        ),
        ({"x_trace": "1"}, "protocoloptions.headers.X-Trace", "fits", None, None),
    ],
)
def test_changed_slot_has_verdict_remedy_and_nearest_name(
    changes: dict[str, str | None], label: str, verdict: str, remedy: str | None, nearest: str | None
) -> None:
    report = slot(post(**changes), label)
    assert (report.verdict, report.nearest) == (verdict, nearest)
    assert (report.remedy or "").startswith(remedy or "")
    assert (report.remedy is None) == (remedy is None)


def test_message_matches_after_its_remedy() -> None:
    assert not Catalog.load(SENSORS).match(post(ce_source="/plant/p1/line/l2")).matched
    remedy = slot(post(ce_source="/plant/p1/line/l2"), "envelopemetadata.source").remedy
    assert remedy is not None
    assert Catalog.load(SENSORS).match(post(ce_source=remedy.split("'")[1])).matched


def test_message_over_another_protocol_is_compared_without_protocol_options() -> None:
    record = {"protocol": "KAFKA", "headers": [["ce_" + n[3:], v] for n, v in HEADERS.items() if n[:3] == "ce-"]}
    comparison = comparison_of(record | {"value": "{}"})
    verdicts = {report.slot: report.verdict for report in comparison.slots}
    assert verdicts["protocol"] == "wrong"
    assert verdicts["envelopemetadata.type"] == "fits"
    assert verdicts["protocoloptions.method"] == "ignored"
    assert comparison.payload is None


def test_typo_in_specversion_is_the_remedy_of_the_envelope() -> None:
    events = {"messagegroups": {"g": {"messages": {"m": {"envelope": "CloudEvents/1.0", "protocol": "NATS",
              "protocoloptions": {"subject": "a.b"}}}}}}  # fmt: skip
    record = {"protocol": "NATS", "subject": "a.b", "headers": [["cee-specversion", "1.0"]], "payload": "x"}
    report = slot(record, "envelope", events)
    assert (report.verdict, report.remedy) == ("wrong", "rename 'cee-specversion' to 'ce-specversion'")


def test_typo_in_a_mandatory_attribute_is_advice() -> None:
    explanation = Catalog.load(SENSORS).explain(post(ce_type=None, ce_tpye="sensor.reading"))
    assert explanation.outcome.outcome == "malformed"
    assert explanation.advice == ("rename 'ce-tpye' to 'ce-type'",)


# -- payloads ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "path", "rule", "remedy", "nearest"),
    [
        ({"celcius": 1}, "", {"required": "celsius"}, "rename 'celcius' to 'celsius'", "celcius"),
        ({"celcius": 1}, "", {"additionalProperties": False}, "rename 'celcius' to 'celsius'", "celsius"),
        ({"celsius": 1, "zzz": 1}, "", {"additionalProperties": False}, "remove 'zzz'", None),
        ({"celsius": 1, "quality": "goood"}, "/quality", {"enum": ["good", "poor"]}, "set it to 'good'", "good"),
        ({"celsius": 1, "unit": {"nam": 1}}, "/unit", {"required": "name"}, "rename 'nam' to 'name'", "nam"),
        ({"celsius": "x"}, "/celsius", {"type": "number"}, "use a value of type number", None),
        ({"celsius": 1, "quality": 7}, "/quality", {"enum": ["good", "poor"]}, "set it to one of 'good', 'poor'", None),
    ],
)
def test_payload_fault_has_path_rule_and_remedy(
    body: Any, path: str, rule: Any, remedy: str | None, nearest: str | None
) -> None:
    payload = comparison_of(post(body)).payload
    assert payload is not None
    assert payload.outcome == "invalid-payload"
    fault = next(fault for fault in payload.faults if fault.rule == rule)
    assert (fault.path, fault.remedy, fault.nearest) == (path, remedy, nearest)


def test_payload_is_validated_by_near_definitions() -> None:
    comparison = comparison_of(post({"celsius": "x"}, ce_type="sensor.readin"))
    assert [report.slot for report in comparison.wrong] == ["envelopemetadata.type"]
    assert comparison.payload is not None
    assert [fault.path for fault in comparison.payload.faults] == ["/celsius"]


# -- several matches --------------------------------------------------------------------------------------------------


def twins(**more: Any) -> dict[str, Any]:
    event = {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": "sensor.reading"}}}
    return {"messagegroups": {"g": {"messages": {"a": event, "b": event} | more}}}


def test_ambiguous_message_lists_equal_definitions() -> None:
    explanation = Catalog.load(twins()).explain(post())
    assert explanation.outcome.outcome == "ambiguous"
    assert [comparison.role for comparison in explanation.comparisons] == ["equal", "equal"]
    assert explanation.comparisons[0].rank == explanation.comparisons[1].rank
    assert "2 definitions are equally specific (constant values: 1" in explanation.reason
    assert explanation.advice


def test_reason_names_the_decisive_criterion() -> None:
    metadata = {"type": {"value": "sensor.reading"}, "subject": {"value": "l2"}}
    better = {"envelope": "CloudEvents/1.0", "envelopemetadata": metadata}
    explanation = Catalog.load(twins(c=better)).explain(post())
    assert explanation.reason == ("3 definitions match; this one is the most specific (constant values: 2, next: 1)")
    assert [comparison.role for comparison in explanation.comparisons] == ["chosen", "beaten", "beaten"]


def test_definition_of_another_endpoint_that_matches_is_advice() -> None:
    document = SENSORS | {
        "endpoints": {"other": {"endpointid": "other", "usage": ["consumer"], "messages": {"x": {
            "messageid": "x", "envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": "x"}}}}}}
    }  # fmt: skip
    explanation = Catalog.load(document).explain(post(), "/endpoints/other")
    assert explanation.outcome.outcome == "unexpected"
    assert explanation.advice == (
        "the message matches /messagegroups/g/messages/reading, which the endpoint '/endpoints/other' does not have",
    )


# -- alignment --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "place", "text", "wrong"),
    [
        ("a/{x}/c", TEXT, "a/b/c", []),
        ("a/{x}/c", TEXT, "a/b/d", [("c", "d")]),
        ("a/{x}/c", TEXT, "a/c", [("{x}", "")]),
        ("a/{x}/c", TEXT, "a/b/more/c", [("", "b")]),
        ("a/{x}", MQTT_TOPIC, "a/+", [("{x}", "+")]),
        ("a.{x}.c", NATS_SUBJECT, "a.b.cc", [("c", "cc")]),
        ("a/{x}", TEXT, "a/", [("{x}", "")]),
        ("v{x}.json", TEXT, "v1.yaml", [("v{x}.json", "v1.yaml")]),
    ],
)
def test_template_and_text_are_aligned(
    template: str, place: TemplateContext, text: str, wrong: list[tuple[str, str]]
) -> None:
    parts = align(parse_template(template, place), text)
    assert [(part.template, part.value) for part in parts if not part.fits] == wrong


@pytest.mark.parametrize("text", ["/" * 5000, "a" * 100_000, "/".join("ab" * 30 for _ in range(31)), "é/" * 900])
def test_long_text_is_explained_at_bounded_cost(text: str) -> None:
    align(parse_template("/".join("{a}" if n % 2 else "a" * 90 for n in range(31))), text)
    nearest_name("a" * 100_000, ["a" * n for n in range(2000)])
    Catalog.load(SENSORS).explain(post(ce_source=text.encode().hex()))


# -- order of definitions ---------------------------------------------------------------------------------------------


def named(*types: str, **more: Any) -> dict[str, Any]:
    """Definitions that differ only in their type."""
    return {
        type_: {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": type_}, **more}}
        for type_ in types
    }


def first_of(messages: dict[str, Any], record: dict[str, Any]) -> str:
    catalog = Catalog.load({"messagegroups": {"g": {"messages": messages}}})
    return catalog.explain(json.dumps(record)).comparisons[0].definition.rpartition("/")[2]


def event(type_: str, *headers: tuple[str, str], body: str = "{}") -> dict[str, Any]:
    every = [("ce-specversion", "1.0"), ("ce-id", "1"), ("ce-source", "/s"), ("ce-type", type_), *headers]
    return {"protocol": "HTTP", "method": "POST", "target": "/", "headers": every, "body": body}


@pytest.mark.parametrize("type_", ["plant.staton", "PLANT.Station", "plant.station.v1"])
def test_typo_in_the_type_shows_the_similar_type_first(type_: str) -> None:
    messages = named(*(f"plant.kind{number}" for number in range(40)), "plant.stations", "plant.station", "z.station")
    assert first_of(messages, event(type_)) == "plant.station"


def test_definition_for_the_protocol_precedes_one_for_any_protocol() -> None:
    twin = named("a.b")["a.b"]
    messages = {"neutral": twin, "http": twin | {"protocol": "HTTP", "protocoloptions": {"path": "/"}}}
    assert first_of(messages, event("a.c")) == "http"


def test_definitions_at_equal_distance_are_ordered_by_payload_faults() -> None:
    def bound(name: str) -> dict[str, Any]:
        schema = {"type": "object", "required": [name], "properties": {name: {"type": "integer"}}}
        return {"dataschemaformat": "JsonSchema/draft-07", "dataschema": schema}

    kinds = {"one": named("a.b")["a.b"] | bound("one"), "two": named("a.b")["a.b"] | bound("two")}
    json_event = [("content-type", "application/json")]
    assert first_of(kinds, event("a.c", *json_event, body='{"two": 5}')) == "two"
    assert first_of(kinds, event("a.b", *json_event, body='{"two": "x", "one": []}')) in kinds


def test_placeholder_conflict_is_reported_with_other_mismatches() -> None:
    """Otherwise the message would still not match once the others are fixed."""
    options = {"protocol": "KAFKA", "protocoloptions": {"key": "{n}"}}
    messages = {"m": named("a.b", subject={"value": "{n}"})["a.b"] | options}
    headers = [("ce_specversion", "1.0"), ("ce_id", "1"), ("ce_source", "/s"), ("ce_type", "a.c"), ("ce_subject", "1")]
    record = {"protocol": "KAFKA", "topic": "t", "key": "2", "headers": headers, "value": "x"}
    explanation = Catalog.load({"messagegroups": {"g": {"messages": messages}}}).explain(json.dumps(record))
    wrong = [(report.slot, report.problem and report.problem.code) for report in explanation.comparisons[0].wrong]
    assert wrong == [("envelopemetadata.type", "mismatch"), ("protocoloptions.key", "placeholder-conflict")]


def test_missing_attribute_of_a_binary_event_is_advice() -> None:
    record = event("a.b")
    record["headers"] = [pair for pair in record["headers"] if pair[0] != "ce-source"]
    explanation = Catalog.load({"messagegroups": {"g": {"messages": named("a.b")}}}).explain(json.dumps(record))
    assert (explanation.outcome.outcome, explanation.advice) == ("malformed", ("add 'ce-source'",))


def test_missing_attribute_of_a_structured_event_is_named_as_its_member() -> None:
    body = json.dumps({"specversion": "1.0", "id": "1", "soure": "/s", "type": "t"})
    headers = [("content-type", "application/cloudevents+json")]
    record = {"protocol": "HTTP", "method": "POST", "target": "/", "headers": headers, "body": body}
    catalog = Catalog.load({"messagegroups": {"g": {"messages": named("a.b")}}})
    assert catalog.explain(json.dumps(record)).advice == ("rename 'soure' to 'source'",)
    assert catalog.explain(b"\xff").advice == ()


# -- the definition of the same type ------------------------------------------------------------------------------


def typed_catalog() -> Catalog:
    """A catalogue of two definitions for different protocols and types."""

    def message(type_: str, protocol: str, options: dict[str, Any], **more: Any) -> dict[str, Any]:
        metadata = {"type": {"value": type_}, **more}
        return {
            "envelope": "CloudEvents/1.0",
            "envelopemetadata": metadata,
            "protocol": protocol,
            "protocoloptions": options,
        }

    messages = {
        "placed": message("order.placed", "HTTP", {"method": "POST"}, level={"type": "integer", "value": 3}),
        "moved": message("order.moved", "KAFKA", {"topic": "orders"}),
    }
    return Catalog.load({"specversion": "1.0-rc4", "messagegroups": {"g": {"messages": messages}}})


KAFKA = {"protocol": "KAFKA", "topic": "orders"}
EVENT = {"specversion": "1.0", "id": "1", "source": "/s", "type": "order.placed"}


@pytest.mark.parametrize(
    "record",
    [
        KAFKA | {"headers": [[f"ce_{name}", value] for name, value in EVENT.items()]},
        KAFKA | {"value": json.dumps(EVENT)},
        KAFKA | {"value": json.dumps(EVENT), "headers": [["content-type", "application/cloudevents+json"]]},
    ],
    ids=["binary", "without content type", "structured"],
)
def test_definition_of_the_same_type_comes_first(record: dict[str, Any]) -> None:
    explanation = typed_catalog().explain(record)
    assert explanation.outcome.outcome == "unexpected"
    assert explanation.comparisons[0].definition == "/messagegroups/g/messages/placed"
    assert explanation.outcome.near[0].definition == "/messagegroups/g/messages/placed"


def test_remedy_for_a_boolean_constant_is_json() -> None:
    metadata = {"type": {"value": "t"}, "urgent": {"type": "boolean", "value": True}}
    message = {"envelope": "CloudEvents/1.0", "envelopemetadata": metadata}
    catalog = Catalog.load({"specversion": "1.0-rc4", "messagegroups": {"g": {"messages": {"m": message}}}})
    headers = [[f"ce_{name}", value] for name, value in (EVENT | {"type": "t"}).items()]
    for extra, remedy in (([], "add ce_urgent: true"), ([["ce_urgent", "false"]], "set it to true")):
        explanation = catalog.explain(KAFKA | {"headers": headers + extra})
        (report,) = explanation.comparisons[0].wrong
        assert report.remedy == remedy
        assert "expected true" in explanation.outcome.problems[0].message


@pytest.mark.parametrize("value", ["4", "three"])
def test_remedy_for_a_constant_is_the_constant(value: str) -> None:
    headers = [[f"ce-{name}", text] for name, text in (EVENT | {"level": value}).items()]
    record = {"protocol": "HTTP", "method": "POST", "target": "/", "headers": headers}
    explanation = typed_catalog().explain(record)
    (report,) = explanation.comparisons[0].wrong
    assert (report.slot, report.remedy) == ("envelopemetadata.level", "set it to 3")


@pytest.mark.parametrize(
    ("rule", "remedy"),
    [
        ({"const": 3}, "set it to 3"),
        ({"enum": [3]}, "set it to 3"),
        ({"const": "a"}, "set it to 'a'"),
        ({"const": [1]}, "set it to [1]"),
        ({"enum": [1, None]}, "set it to one of 1, null"),
    ],
)
def test_remedy_for_a_constant_of_the_payload_is_the_constant(rule: dict[str, Any], remedy: str) -> None:
    schema = {"type": "object", "properties": {"n": rule}}
    message = {"protocol": "KAFKA", "protocoloptions": {"topic": "orders"}}
    message |= {"dataschemaformat": "JsonSchema/draft-07", "dataschema": schema}
    loaded = Catalog.load({"specversion": "1.0-rc4", "messagegroups": {"g": {"messages": {"m": message}}}})
    payload = loaded.explain(KAFKA | {"value": '{"n": true}'}).comparisons[0].payload
    assert payload is not None
    assert [fault.remedy for fault in payload.faults] == [remedy]


@pytest.mark.parametrize(
    ("record", "remedy"),
    [
        (KAFKA | {"value": json.dumps(EVENT)}, "add content-type: 'application/cloudevents+json', "),
        (
            {"protocol": "HTTP", "method": "POST", "target": "/", "headers": [], "body": json.dumps([EVENT])},
            "add content-type: 'application/cloudevents-batch+json', ",
        ),
        (
            {
                "protocol": "MQTT/5.0",
                "topic": "t",
                "payload": json.dumps(EVENT),
                "properties": {"content_type": "text/json"},
            },
            "set content_type to 'application/cloudevents+json' (now 'text/json'), ",
        ),
        (
            {"protocol": "AMQP/1.0", "properties": {"subject": "s"}, "body": json.dumps(EVENT)},
            "add content-type: 'application/cloudevents+json', ",
        ),
        (KAFKA | {"value": json.dumps({"type": "order.placed"})}, "send the message as a CloudEvent"),
    ],
    ids=["kafka", "http batch", "mqtt", "amqp", "no event"],
)
def test_remedy_names_the_content_type_of_a_structured_event(record: dict[str, Any], remedy: str) -> None:
    explanation = typed_catalog().explain(record)
    what = "a batch of CloudEvents" if "-batch" in remedy else "a CloudEvent"
    reports = {report.slot: report for report in explanation.comparisons[0].wrong}
    expected = remedy if remedy.endswith("CloudEvent") else f"{remedy}because the payload is {what}"
    assert reports["envelope"].remedy == expected


def test_repeated_name_shows_the_compared_instance() -> None:
    options = {"key": "{x}", "headers": {"h": {"value": "{x}"}, "g": {"value": "{y}"}}}
    message = {"messageid": "m", "protocol": "KAFKA", "protocoloptions": options}
    catalog = Catalog.load({"messagegroups": {"g": {"messagegroupid": "g", "messages": {"m": message}}}})
    record = {"protocol": "KAFKA", "topic": "t", "key": "2", "value": "{}"}
    headers = [["h", "1"], ["h", "2"], ["g", "a"], ["g", "b"]]

    def reports(key: str) -> dict[str, SlotReport]:
        comparison = catalog.explain(record | {"key": key, "headers": headers}).comparisons[0]
        return {report.slot: report for report in comparison.slots}

    fitting = reports("2")["protocoloptions.headers.h"]
    assert (fitting.verdict, fitting.actual) == ("fits", "2")
    wrong = reports("3")["protocoloptions.headers.h"]
    assert (wrong.verdict, wrong.actual, wrong.problem and wrong.problem.code) == ("wrong", "1", "placeholder-conflict")
    assert wrong.remedy == "set it to '3', or set protocoloptions.key to '1'"
    assert reports("3")["protocoloptions.headers.g"].verdict == "fits"


def test_definition_that_matches_both_views_is_shown_once() -> None:
    message = {"envelope": "CloudEvents/1.0", "envelopemetadata": {}, "protocol": "MQTT/3.1.1", "protocoloptions": {}}
    document = {"messagegroups": {"g": {"messages": {"m": message}}}}
    catalog = Catalog.load(document, options=MatchOptions(accept_native=True))
    event = {"specversion": "1.0", "id": "1", "type": "t", "source": "/s"}
    record = {"protocol": "MQTT/3.1.1", "topic": "t", "payload": json.dumps(event)}
    explanation = catalog.explain(record)
    assert (explanation.outcome.outcome, explanation.outcome.synthesized) == ("matched", False)
    assert [comparison.role for comparison in explanation.comparisons] == ["chosen"]
    assert explanation.reason == "one definition matches"


def test_bytes_that_differ_from_their_base64_text_are_shown_as_base64() -> None:
    header = {"type": "binary", "value": "gIE="}
    message = {"protocol": "KAFKA", "protocoloptions": {"headers": {"h": header}}}
    catalog = Catalog.load({"messagegroups": {"g": {"messages": {"m": message}}}})
    record = {"protocol": "KAFKA", "headers": [["h", "gIE="]], "value": "{}"}
    (wrong,) = catalog.explain(record).comparisons[0].wrong
    assert wrong.problem is not None
    assert (wrong.problem.expected, wrong.problem.actual) == ({"base64": "gIE="}, "gIE=")
    assert wrong.remedy == "set it to the bytes with the base64 'gIE='"
