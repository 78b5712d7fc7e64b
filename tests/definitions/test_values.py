"""Property types: what is of a type, and what is equal."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirebook.definitions.compile.values import CHECKS, NotOfType, canonical, is_current_time, type_name

VECTORS = json.loads((Path(__file__).parent.parent / "vectors/message/values.json").read_text())
ROWS = [
    (row["type"], kind, value) for row in VECTORS for kind in ("equal", "different", "invalid") for value in row[kind]
]


@pytest.mark.parametrize(("type_", "kind", "value"), ROWS, ids=lambda part: str(part)[:40])
def test_value_vector(type_: str, kind: str, value: Any) -> None:
    if kind == "invalid":
        with pytest.raises(NotOfType):
            canonical(type_, value)
    else:
        assert (canonical(type_, value[0]) == canonical(type_, value[1])) is (kind == "equal")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0000-01-01T00:00:00Z", True),
        ("0000-01-01t00:00:00.000z", True),
        ("0000-01-01T00:00:00+00:00", True),
        ("01-01-0000T00:00:00Z", True),
        ("0001-01-01T00:00:00+00:00", True),
        ("0001-01-01T00:00:00Z", False),
        ("2026-01-01T00:00:00Z", False),
        (None, False),
    ],
)
def test_current_time_marker_is_recognised(text: str | None, expected: bool) -> None:
    assert is_current_time(text) is expected


@pytest.mark.parametrize(
    ("declared", "expected"),
    [("var", "any"), ("datetime", "timestamp"), ("double", "number"), ("banana", None), (5, None), ("uint32", None)],
)
def test_type_name_is_normalised(declared: Any, expected: str | None) -> None:
    assert type_name(declared) == expected


@given(
    st.sampled_from(sorted(CHECKS)),
    st.one_of(st.text(), st.integers(), st.floats(), st.booleans(), st.binary(), st.none()),
)
def test_any_value_is_checked_without_an_exception(type_: str, value: Any) -> None:
    with suppress(NotOfType):
        assert canonical(type_, value) == canonical(type_, value)
