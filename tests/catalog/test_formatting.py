"""Canonical order: equal content has equal text, the content does not change, and the order is stable."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest
import yaml

from wirebook.catalog.formatting import in_canonical_order, meaning, render
from wirebook.catalog.yamlorder import reordered
from wirebook.problems import Problem, WirebookError

VECTORS = Path(__file__).resolve().parent.parent / "vectors" / "documents"
EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "bikes.xreg.json"


def documents() -> list[tuple[str, dict[str, Any]]]:
    named: list[tuple[str, dict[str, Any]]] = [("bikes", json.loads(EXAMPLE.read_text("utf-8")))]
    for name in ("lint", "dialects", "texts", "resolution"):
        for vector in json.loads((VECTORS / f"{name}.json").read_text("utf-8"))["vectors"]:
            if "document" in vector:
                named.append((f"{name}-{vector['name']}", vector["document"]))
            elif "message" in vector:
                named.append(
                    (f"{name}-{vector['name']}", {"messagegroups": {"g": {"messages": {"m": vector["message"]}}}})
                )
            elif "endpoint" in vector:
                named.append((f"{name}-{vector['name']}", {"endpoints": {"e": vector["endpoint"]}}))
    return named


def means(value: Any) -> Any:
    try:
        return meaning(copy.deepcopy(value))
    except WirebookError as error:
        return [problem.code for problem in error.problems]


def shuffled(value: Any, chooser: random.Random) -> Any:
    """Shuffle the members of all objects in a value."""
    if isinstance(value, list):
        return [shuffled(item, chooser) for item in value]
    if not isinstance(value, dict):
        return value
    names = list(value)
    chooser.shuffle(names)
    return {name: shuffled(value[name], chooser) for name in names}


@pytest.mark.parametrize("document", [pytest.param(value, id=name) for name, value in documents()])
def test_canonical_order_keeps_the_content_and_is_stable(document: dict[str, Any]) -> None:
    once = in_canonical_order(document)
    assert once == document
    assert means(once) == means(document)
    assert render(in_canonical_order(once)) == render(once)


def test_corpus_document_in_canonical_order_keeps_its_content(shared: Path) -> None:
    files = sorted((shared / "corpus").glob("*/*.xreg.json"))
    assert len(files) == 57
    for file in files:
        document = json.loads(file.read_text("utf-8"))
        once = in_canonical_order(document)
        assert meaning(once) == meaning(document), file.name
        assert json.loads(render(once)) == document
        assert render(in_canonical_order(json.loads(render(once)))) == render(once), file.name


def test_shuffled_documents_have_the_same_canonical_text() -> None:
    document = json.loads(EXAMPLE.read_text("utf-8"))
    for group in document["messagegroups"].values():  # what is left as it is: schemas, headers
        for message in group["messages"].values():
            message.pop("dataschema", None)
    document.pop("schemagroups", None)
    expected = render(in_canonical_order(document))
    for seed in range(20):
        other = shuffled(document, random.Random(seed))
        for group in other["messagegroups"].values():
            for message in group["messages"].values():
                assert isinstance(message.get("protocoloptions", {}).get("headers", []), list)
        assert render(in_canonical_order(other)) == expected


def test_attributes_are_in_the_order_of_the_specification() -> None:
    definition = {
        "x-own": 1,
        "datacontenttype": "text/a",
        "protocoloptions": {"headers": {"z": {"name": "z"}, "a": {"name": "a"}}, "key": "k", "topic": "t"},
        "protocol": "KAFKA",
        "messageid": "m",
        "envelopemetadata": {"zone": {}, "type": {"value": "m", "type": "string"}},
    }
    document = {"messagegroups": {"b": {}, "a": {"messages": {"m": definition}}}, "specversion": "1.0-rc4"}
    message = in_canonical_order(document)["messagegroups"]["a"]["messages"]["m"]
    assert list(in_canonical_order(document)) == ["specversion", "messagegroups"]
    assert list(in_canonical_order(document)["messagegroups"]) == ["a", "b"]
    assert list(message) == ["messageid", "envelopemetadata", "protocol", "protocoloptions", "datacontenttype", "x-own"]
    assert list(message["envelopemetadata"]) == ["type", "zone"]
    assert list(message["protocoloptions"]) == ["headers", "topic", "key"]
    assert list(message["protocoloptions"]["headers"]) == ["z", "a"]


TEXT = """\
# the catalogue of the bikes
# in two lines

specversion: "1.0-rc4"
messagegroups:
  # rides come second
  rides:
    messages:
      started: {datacontenttype: text/plain} # on one line
      # it ends
      ended:
        protocoloptions:
          topic: t   # odd   blanks stay
          headers:
            - value: v
              name: n
        protocol: KAFKA
        description: |
          text: with
          # no comment
  docks:
    envelope: CloudEvents/1.0
# behind
registryid: bikes
"""
ORDERED = """\
# the catalogue of the bikes
# in two lines

specversion: "1.0-rc4"
# behind
registryid: bikes
messagegroups:
  docks:
    envelope: CloudEvents/1.0
  # rides come second
  rides:
    messages:
      # it ends
      ended:
        description: |
          text: with
          # no comment
        protocol: KAFKA
        protocoloptions:
          headers:
            - value: v
              name: n
          topic: t   # odd   blanks stay
      started: {datacontenttype: text/plain} # on one line
"""


def test_yaml_members_move_with_their_comments() -> None:
    value = yaml.safe_load(TEXT)
    once = reordered(TEXT, in_canonical_order(value))
    assert once == ORDERED
    assert yaml.safe_load(once) == value
    assert reordered(once, in_canonical_order(value)) == once


@pytest.mark.parametrize("seed", range(30))
def test_shuffled_yaml_has_the_same_canonical_text(seed: int) -> None:
    value = shuffled(json.loads(EXAMPLE.read_text("utf-8")), random.Random(seed))
    text = yaml.safe_dump(value, sort_keys=False, default_flow_style=None if seed % 2 else False)
    once = reordered(text, in_canonical_order(value))
    assert yaml.safe_load(once) == value
    assert sorted(once.splitlines()) == sorted(text.splitlines())
    assert reordered(once, in_canonical_order(value)) == once


def test_finding_in_problem_class_has_the_code() -> None:
    assert Problem(code="not-orderable").severity == "error"
