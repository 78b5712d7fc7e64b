"""Regression tests: inputs for which fuzzing found a fault, minimised."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fuzzing.case import Limits, from_json
from fuzzing.planted import kind_named
from fuzzing.worker import fault_of, run_case

CASES = [
    (file.stem, case)
    for file in sorted((Path(__file__).parent / "cases").glob("*.json"))
    for case in json.loads(file.read_text("utf-8"))
]


@pytest.mark.parametrize(("kind", "case"), CASES, ids=[f"{kind}: {case['description']}" for kind, case in CASES])
def test_fixed_finding_stays_fixed(kind: str, case: dict[str, Any]) -> None:
    value = from_json(case["input"])
    result = run_case(kind_named(kind), value, Limits(memory=1 << 60))
    assert "fault" not in result, result["detail"]


def test_fixed_findings_exist() -> None:
    assert CASES
    assert fault_of(ZeroDivisionError())["fault"].startswith("ZeroDivisionError")
