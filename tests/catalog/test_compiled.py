"""Compiled catalogues, and catalogues that were sent to another process."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from wirebook.catalog import Catalog
from wirebook.definitions.match.options import MatchOptions

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
DOCUMENT: dict[str, Any] = {
    "specversion": "1.0-rc4",
    "registryid": "r",
    "endpoints": {
        "in": {"endpointid": "in", "usage": ["consumer"], "protocol": "KAFKA", "messagegroups": ["/messagegroups/g"]}
    },
    "messagegroups": {
        "g": {
            "messagegroupid": "g",
            "protocol": "KAFKA",
            "messages": {
                "a": {
                    "messageid": "a",
                    "protocoloptions": {"topic": "a", "key": "{shop}/{order}"},
                    "dataschemaformat": "JsonSchema/draft/2020-12",
                    "dataschema": SCHEMA,
                },
                "b": {"messageid": "b", "protocoloptions": {"topic": "b"}},
            },
        }
    },
}
MESSAGES = [
    {"protocol": "KAFKA", "topic": "a", "key": "lund/7", "value": '{"n": 1}'},
    {"protocol": "KAFKA", "topic": "a", "key": "lund/7", "value": '{"n": "x"}'},
    {"protocol": "KAFKA", "topic": "a", "key": "lund"},
    {"protocol": "KAFKA", "topic": "b"},
    {"protocol": "KAFKA", "topic": "c"},
]


def outcomes(catalog: Catalog) -> list[Any]:
    found = [catalog.match(message, endpoint) for message in MESSAGES for endpoint in (None, "/endpoints/in")]
    return [
        (outcome.outcome, outcome.definition, outcome.bindings, outcome.problems, outcome.near) for outcome in found
    ]


@pytest.mark.parametrize("confluent_prefix", [False, True])
def test_catalogue_of_another_process_matches_alike(confluent_prefix: bool) -> None:
    options = MatchOptions(confluent_prefix=confluent_prefix)
    catalog = Catalog.load(DOCUMENT, options=options)
    expected = outcomes(Catalog.load(DOCUMENT, options=options))
    for sent in (catalog, catalog.compiled()):  # the first one compiles in the other process
        received: Catalog = pickle.loads(pickle.dumps(sent))
        assert (outcomes(received), received.fingerprint) == (expected, catalog.fingerprint)
        assert received.refreshed() is received
    assert outcomes(catalog) == expected


def test_compiled_catalogue_has_no_documents() -> None:
    catalog = Catalog.load({**DOCUMENT, "messagegroups": {**DOCUMENT["messagegroups"], "x": {"messages": {"?": 1}}}})
    assert catalog.diagnostics
    compiled = catalog.compiled()
    assert (compiled.diagnostics, compiled.registry.documents, compiled.registry.origins) == ((), (), ())
    assert compiled.definitions == catalog.definitions
