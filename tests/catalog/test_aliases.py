"""An alias is the same message as its target in lint, building, explanations and tables."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from wirebook.bindings import HttpMessage
from wirebook.catalog import Catalog
from wirebook.definitions.lint.registry import lint
from wirebook.landing.chunks import Chunk, Landed
from wirebook.landing.runs.engine import CatalogueEngine

SOURCE = "/messagegroups/g/messages/m"
ALIAS = "/messagegroups/h/messages/m"
META = {"xref": SOURCE}
DOCUMENT: dict[str, Any] = {
    "specversion": "1.0-rc4",
    "registryid": "r",
    "messagegroups": {
        "g": {"messagegroupid": "g", "messages": {
            "m": {"messageid": "m", "envelope": "CloudEvents/1.0", "envelopemetadata": {
                "type": {"value": "t"}, "subject": {"value": "{s}"}}}}},
        "h": {"messagegroupid": "h", "messages": {
            "m": {"messageid": "m", "meta": META}, "n": {"messageid": "n", "meta": META}}},
    },
    "endpoints": {
        "alias": {"endpointid": "alias", "usage": ["consumer"], "messagegroups": ["/messagegroups/h"]},
        "both": {
            "endpointid": "both", "usage": ["consumer"], "messagegroups": ["/messagegroups/h", "/messagegroups/g"]},
    },
}  # fmt: skip
HEADERS = [["ce-specversion", "1.0"], ["ce-id", "1"], ["ce-source", "/s"], ["ce-type", "t"], ["ce-subject", "x"]]
RECORD = {"protocol": "HTTP", "method": "POST", "target": "/", "headers": HEADERS}


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return Catalog.load(DOCUMENT)


def test_alias_is_not_compared_with_its_source(catalog: Catalog) -> None:
    assert {problem.code for problem in lint(catalog.registry)} == {"id-is-not-type"}


def test_explanation_of_alias_names_its_target_once(catalog: Catalog) -> None:
    explanation = catalog.explain(RECORD)
    assert [comparison.definition for comparison in explanation.comparisons] == [SOURCE]
    assert explanation.outcome.definition == SOURCE
    within = catalog.explain(RECORD, "/endpoints/alias")
    assert [comparison.definition for comparison in within.comparisons] == [ALIAS]


def test_message_built_from_alias_equals_that_of_its_target() -> None:
    untyped = json.loads(json.dumps(DOCUMENT))
    untyped["messagegroups"]["g"]["messages"]["m"]["envelopemetadata"] = {}
    catalog = Catalog.load(untyped)
    built = catalog.build("/messagegroups/h/messages/n", attributes={"source": "/s"}, protocol="HTTP")
    assert isinstance(built, HttpMessage)
    assert dict(built.headers or ())["ce-type"] == "m"
    assert catalog.match(built).definition == SOURCE


def landed(catalog: Catalog, endpoint: str | None, *, columns: bool) -> Landed:
    lines = [json.dumps(RECORD).encode()] * 3
    chunk = Chunk(
        file="f", file_type="capture", lines=pa.array(lines, pa.large_binary()), numbers=pa.array([1, 2, 3]).to_numpy()
    )
    return CatalogueEngine(catalog, endpoint=endpoint, columns=columns).land(chunk)


@pytest.mark.parametrize("columns", [True, False])
@pytest.mark.parametrize("endpoint", [None, "/endpoints/alias", "/endpoints/both"])
def test_rows_of_alias_land_in_the_table_of_its_target(catalog: Catalog, endpoint: str | None, columns: bool) -> None:
    report = landed(catalog, endpoint, columns=columns)
    assert report.outcomes == {"matched": 3}
    assert {table: report.info[table].definition for table in report.tables} == {SOURCE: SOURCE}
