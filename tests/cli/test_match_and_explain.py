"""`match` and `explain` agree on every message."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from wirebook.cli.app import run
from wirebook.demo.folder import DemoFolder

DOCS = Path(__file__).resolve().parents[2] / "docs" / "examples"
MORE = {"reason", "advice", "comparisons"}


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Path, Path]]:
    """Captures and their catalogues: the examples, and synthesised traffic of each protocol and kind of fault."""
    folder = DemoFolder(tmp_path_factory.mktemp("demo") / "demo")
    folder.make(3000, 5)
    return [(DOCS / "captures", DOCS / "bikes.xreg.json"), (folder.captures, folder.catalogue)]


def test_explain_agrees_with_match(sources: list[tuple[Path, Path]], capsys: pytest.CaptureFixture[str]) -> None:
    outcomes: Counter[str] = Counter()
    for captures, catalogue in sources:
        arguments = [str(captures), "--catalog", str(catalogue), "--json"]
        assert run(["match", *arguments]) == 0
        matched = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert run(["explain", *arguments, "--limit", "100000"]) == 0
        explained = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert [{name: each[name] for name in each if name not in MORE} for each in explained] == matched
        for explanation in explained:
            check(explanation)
        outcomes.update(each["outcome"] for each in matched)
    assert {"matched", "unexpected", "invalid-payload", "malformed", "undecodable"} <= outcomes.keys()


def check(explanation: dict[str, Any]) -> None:
    """The comparisons say what the outcome says."""
    comparisons, outcome = explanation["comparisons"], explanation["outcome"]
    chosen = [comparison["definition"] for comparison in comparisons if comparison["role"] == "chosen"]
    assert chosen == ([explanation["definition"]] if explanation["definition"] else [])
    assert explanation["reason"]
    if chosen:
        first = comparisons[0]
        assert first["role"] == "chosen"
        assert not [slot for slot in first["slots"] if slot["verdict"] == "wrong"]
        faults = first["payload"]["faults"] if first["payload"] else []
        assert bool(faults) == (outcome != "matched")
        codes = {problem["code"] for problem in explanation["problems"]}
        assert {fault["code"] for fault in faults} <= codes
    if outcome == "unexpected":
        assert {comparison["role"] for comparison in comparisons} <= {"near"}
        assert all(any(slot["verdict"] == "wrong" for slot in comparison["slots"]) for comparison in comparisons)
        named = {comparison["definition"] for comparison in comparisons}
        assert {near["definition"] for near in explanation["near"]} <= named or len(named) == 5
