"""Starter catalogues: every combination passes lint, and its example message matches."""

from __future__ import annotations

import itertools

import pytest

from wirebook import Catalog
from wirebook.catalog.load import load_registry
from wirebook.catalog.starter import CONTEXT, DATA, ENVELOPES, FORMATS, MESSAGE, NONE, PROTOCOLS, starter_catalog
from wirebook.definitions.lint.registry import lint

CHOICES = [choice for choice in itertools.product(PROTOCOLS, ENVELOPES, FORMATS) if not choice[0] == choice[1] == NONE]


@pytest.mark.parametrize(("protocol", "envelope", "format"), CHOICES)
def test_starter_catalogue_passes_lint_and_matches_its_example(protocol: str, envelope: str, format: str) -> None:
    document = starter_catalog(protocol, envelope, format)
    assert not lint(load_registry(document))
    catalog = Catalog.load(document)
    data = None if format == NONE else DATA
    message = catalog.build(MESSAGE, CONTEXT, data, protocol="HTTP" if protocol == NONE else None)
    outcome = catalog.match(message)
    assert (outcome.outcome, outcome.definition, outcome.bindings) == ("matched", MESSAGE, CONTEXT)
    if data is not None:
        assert outcome.data == data
