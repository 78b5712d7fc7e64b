"""Findings of one report do not contradict each other: real catalogues, vectors, randomly mutated documents."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.catalog.consistency import contradictions
from tests.catalog.test_lint_faults import FAULTS, OLDER, broken
from tests.catalog.test_lint_mistakes import VECTORS
from tests.catalog.test_mutations import DOCUMENTS, mutate
from wirebook.catalog.load import load_registry
from wirebook.definitions.lint.registry import lint
from wirebook.problems import Problem, WirebookError

TESTS = Path(__file__).resolve().parent.parent


def report(source: Any) -> tuple[Problem, ...]:
    try:
        return lint(load_registry(source))
    except WirebookError as error:
        return error.problems


def test_reports_of_real_catalogues_are_consistent(shared: Path) -> None:
    for file in sorted((shared / "corpus").glob("*/*.json")):
        assert list(contradictions(report(file))) == [], file
    for folder in ("production", "spec-scenarios"):
        assert list(contradictions(report(shared / "corpus" / folder))) == []


def test_report_of_the_demonstration_is_consistent() -> None:
    files = [*TESTS.parent.glob("src/wirebook/demo/**/*.json"), *TESTS.parent.glob("docs/examples/**/*.json")]
    assert files
    for file in files:
        assert list(contradictions(report(file))) == [], file


def test_reports_of_vectors_are_consistent() -> None:
    documents = [broken(fault) for fault in FAULTS[::3]]
    documents += [broken(fault, OLDER["bases"][fault["base"]]) for fault in OLDER["faults"]]
    documents += [vector["wrong"] for vector in VECTORS if isinstance(vector["wrong"], dict)]
    for document in documents:
        assert list(contradictions(report(document))) == [], json.dumps(document)


@pytest.mark.parametrize("seed", range(4))
def test_reports_of_mutated_documents_are_consistent(seed: int) -> None:
    """Lint the documents of two vectors as one catalogue, with randomly exchanged parts."""
    chance = random.Random(seed)
    pool = [*DOCUMENTS, *(vector["wrong"] for vector in VECTORS if isinstance(vector["wrong"], dict))]
    for _ in range(100):
        documents = [copy.deepcopy(document) for document in chance.sample(pool, 2)]
        for document in documents:
            for _ in range(chance.randint(0, 3)):
                mutate(document, chance)
        try:
            problems = lint(load_registry(*documents))
        except WirebookError:
            continue
        assert list(contradictions(problems)) == [], json.dumps(documents)
