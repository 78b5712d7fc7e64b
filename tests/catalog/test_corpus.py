"""Real catalogues load completely and without false findings."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from wirebook.catalog.load import load_registry
from wirebook.catalog.upgrade import render_document, upgrade
from wirebook.definitions.lint.registry import lint
from wirebook.definitions.resolve.registry import LoadedRegistry
from wirebook.problems import Severity

FILES = {"production": 48, "spec-scenarios": 9}


@pytest.fixture(scope="module", params=FILES)
def catalogues(request: pytest.FixtureRequest, shared: Path) -> dict[str, LoadedRegistry]:
    folder = shared / "corpus" / request.param
    registries = {path.name: load_registry(path) for path in sorted(folder.glob("*.json"))}
    assert len(registries) == FILES[request.param]
    return registries


def test_corpus_document_keeps_every_definition(catalogues: dict[str, LoadedRegistry], shared: Path) -> None:
    for name, registry in catalogues.items():
        text = next((shared / "corpus").glob(f"*/{name}")).read_text("utf-8")
        raw = json.loads(text)
        messages = sum(len(group["messages"]) for group in raw["messagegroups"].values())
        assert len(registry.messages) == messages
        assert len(registry.endpoints) == len(raw.get("endpoints", {}))
        assert not [message.xid for message in registry.messages.values() if message.invalid or message.incomplete]
        assert not [endpoint.xid for endpoint in registry.endpoints.values() if endpoint.dangling]


def test_corpus_document_has_no_errors(catalogues: dict[str, LoadedRegistry]) -> None:
    """All findings were checked by hand: only these are errors in the catalogues.

    One has a text where the core specification requires a URL.
    """
    problems = [problem for registry in catalogues.values() for problem in lint(registry)]
    errors = Counter(
        (problem.code, Path(problem.file or "").name) for problem in problems if problem.severity is Severity.ERROR
    )
    assert errors in (
        {("bad-attribute", "fdsn-seismology.xreg.json"): 1},
        {("unnamed-message", "inkjet-proto3.xreg.json"): 5},  # the text asks for a name: 4.3.4
    )
    assert {problem.code for problem in problems if problem.severity is Severity.WARNING} <= {
        "fixed-time",
        "alike",
        "unusable-schema",
        "format-without-version",
    }
    assert all(problem.line for problem in problems)


def test_second_upgrade_of_corpus_document_changes_nothing(catalogues: dict[str, LoadedRegistry]) -> None:
    for name, registry in catalogues.items():
        once = render_document(upgrade(registry)[0])
        document, problems = upgrade(load_registry(json.loads(once)))
        assert render_document(document) == once, name
        assert problems == (), name


def test_production_catalogues_have_expected_counts(shared: Path) -> None:
    registry = load_registry(shared / "corpus" / "production")
    assert (len(registry.messages), len(registry.endpoints)) == (481, 160)
    counted = Counter(problem.code for problem in registry.problems)
    assert counted["old-base-name"] == 323
    assert counted["none-selector"] == 37
    assert counted["misplaced-option"] == 148
    assert "conflicting-documents" not in counted


def test_folder_with_other_files_loads_its_catalogues(shared: Path) -> None:
    registry = load_registry(shared / "corpus")
    assert len(registry.sources) == sum(FILES.values())
