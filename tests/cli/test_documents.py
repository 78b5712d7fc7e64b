"""`wirebook lint` and `wirebook upgrade`: output, streams and exit codes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic_sarif.model import StaticAnalysisResultsFormatSarifVersion210JsonSchema as SarifLog

from wirebook.cli.app import run
from wirebook.cli.documents import write_whole
from wirebook.cli.sarif import sarif_log
from wirebook.problems import CODES, Problem, WirebookError

LINT = Path(__file__).resolve().parent.parent / "vectors" / "documents" / "lint.json"

GOOD = {"specversion": "1.0-rc4", "messagegroups": {"g": {"messages": {"m": {"datacontenttype": "text/plain"}}}}}
WARN = {"messagegroups": {"g": {"messages": {"m": {"basemessage": "/messagegroups/g/messages/n"}}}}}
BAD = {"messagegroups": {"g": {"messages": {"m": {"datacontenttype": "no type"}}}}}


@pytest.fixture(autouse=True)
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in {"good": GOOD, "warn": WARN, "bad": BAD}.items():
        Path(f"{name}.json").write_text(json.dumps(value, indent=1), "utf-8")
    Path("cut.json").write_text('{"messagegroups": {', "utf-8")
    Path("empty").mkdir()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["good.json"], 0),
        (["warn.json"], 0),
        (["warn.json", "--fail-on", "warning"], 1),
        (["bad.json"], 1),
        (["bad.json", "--fail-on", "warning"], 1),
        (["good.json", "cut.json"], 1),
        (["."], 1),
        (["cut.json"], 2),
        (["nope.json"], 2),
        (["empty"], 2),
        ([], 2),
        (["good.json", "--format", "xml"], 2),
    ],
)
def test_lint_exit_code_depends_on_the_threshold(arguments: list[str], code: int) -> None:
    assert run(["lint", *arguments]) == code


def test_lint_prints_text(capsys: pytest.CaptureFixture[str]) -> None:
    run(["lint", "bad.json"])
    out, err = capsys.readouterr()
    assert out == (
        "bad.json:6:6: error bad-media-type: 'no type' is not a valid media type; allowed: type/subtype "
        "(/messagegroups/g/messages/m/datacontenttype)\n"
    )
    assert err == "1 error, 0 warnings, 0 notes in 1 document\n"


def test_unreadable_source_is_reported_with_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lint", "cut.json"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "cut.json:1:" in err
    assert "syntax-error" in err
    assert "Traceback" not in err


def test_lint_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    run(["lint", "bad.json", "warn.json", "--format", "json"])
    out, err = capsys.readouterr()
    problems = json.loads(out)
    assert err == ""
    assert {problem["code"] for problem in problems} == {"bad-media-type", "conflicting-documents"}
    first = next(problem for problem in problems if problem["code"] == "bad-media-type")
    assert first == {
        "severity": "error",
        "code": "bad-media-type",
        "message": "'no type' is not a valid media type; allowed: type/subtype",
        "pointer": "/messagegroups/g/messages/m/datacontenttype",
        "xid": "/messagegroups/g/messages/m",
        "file": "bad.json",
        "line": 6,
        "column": 6,
        "expected": "type/subtype",
        "actual": "no type",
    }


def test_lint_prints_sarif(capsys: pytest.CaptureFixture[str]) -> None:
    Path("ä b.json").write_text(json.dumps(BAD), "utf-8")
    run(["lint", "ä b.json", str(Path("bad.json").absolute()), "--format", "sarif"])
    log = json.loads(capsys.readouterr().out)
    assert log["version"] == "2.1.0"
    (sarif,) = log["runs"]
    rules = sarif["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["bad-media-type"]
    assert rules[0]["shortDescription"]["text"] == CODES["bad-media-type"].title
    (result,) = sarif["results"]
    assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    assert result["level"] == "error"
    assert rules[0]["help"]["text"].startswith(rules[0]["fullDescription"]["text"])
    physical = result["locations"][0]["physicalLocation"]
    assert physical["artifactLocation"]["uri"] == "%C3%A4%20b.json"
    assert physical["region"] == {"startLine": 1, "startColumn": 45}
    assert result["locations"][0]["logicalLocations"] == [{"fullyQualifiedName": "/messagegroups/g/messages/m"}]


def fingerprints(capsys: pytest.CaptureFixture[str]) -> list[str]:
    run(["lint", "moving.json", "--format", "sarif"])
    (sarif,) = json.loads(capsys.readouterr().out)["runs"]
    return [result["partialFingerprints"]["finding/v1"] for result in sarif["results"]]


def test_sarif_fingerprint_is_stable_when_lines_move(capsys: pytest.CaptureFixture[str]) -> None:
    document = {"messagegroups": {"g": {"messages": {"m": {"datacontenttype": "x"}, "n": {"datacontenttype": "x"}}}}}
    Path("moving.json").write_text(json.dumps(document))
    before = fingerprints(capsys)
    assert len(set(before)) == len(before)
    Path("moving.json").write_text(json.dumps(document | {"specversion": "1.0-rc4"}, indent=4))
    assert fingerprints(capsys) == before


def lint_vectors() -> Iterator[dict[str, Any]]:
    """The document of each vector about lint."""
    for vector in json.loads(LINT.read_text("utf-8"))["vectors"]:
        messages = {"g": {"messages": {"m": vector.get("message")}}}
        yield vector.get("document") or (
            {"messagegroups": messages} if "message" in vector else {"endpoints": {"e": vector["endpoint"]}}
        )


def test_sarif_conforms_to_its_schema(capsys: pytest.CaptureFixture[str]) -> None:
    """By an object model that was generated from the schema of SARIF 2.1.0 and allows no other members."""
    rules: set[str] = set()
    for document in lint_vectors():
        Path("vector.json").write_text(json.dumps(document))
        run(["lint", "vector.json", "--format", "sarif"])
        out = capsys.readouterr().out
        assert out.isascii()
        (log_run,) = SarifLog.model_validate_json(out).runs
        rules.update(rule.id for rule in log_run.tool.driver.rules or ())
        for result in log_run.results or ():
            assert not re.search(r"(?<!\{)(\{\{)*\{\d+\}", result.message.text or ""), "no placeholder of SARIF's own"
    assert len(rules) > 60


@pytest.mark.parametrize("form", ["json", "sarif"])
def test_unreadable_source_is_a_finding_in_json_and_sarif(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("broken.json").write_text('{"messagegroups": ')
    assert run(["lint", "broken.json", "--format", form]) == 2
    out, err = capsys.readouterr()
    output = json.loads(out)
    codes = (
        [finding["code"] for finding in output]
        if form == "json"
        else [r["ruleId"] for r in output["runs"][0]["results"]]
    )
    assert codes == ["syntax-error"]
    assert "[syntax-error]" in err


def test_sarif_doubles_braces() -> None:
    problem = Problem(code="syntax-error", message="'{0}' and {x}")
    (result,) = sarif_log([problem], "1")["runs"][0]["results"]
    assert result["message"]["text"] == "'{{0}}' and {{x}}"


def test_upgrade_writes_to_standard_output_and_reports_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    Path("old.yaml").write_text("definitionGroups: {g: {definitions: {m: {id: m, format: NATS}}}}", "utf-8")
    assert run(["upgrade", "old.yaml", "--to", "1.0-rc4"]) == 0
    out, err = capsys.readouterr()
    expected: dict[str, Any] = {"messageid": "m", "protocol": "NATS"}
    assert json.loads(out) == {"specversion": "1.0-rc4", "messagegroups": {"g": {"messages": {"m": expected}}}}
    assert (
        "old.yaml:1:1: info old-collection-name: 'definitionGroups' was read as 'messagegroups', its name in 1.0-rc4"
        in err
    )
    assert err.count("\n") == 6


def test_upgrade_of_an_upgraded_file_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["upgrade", "good.json", "--output", "new.json"]) == 0
    assert run(["upgrade", "new.json", "--output", "newer.json"]) == 0
    assert Path("new.json").read_bytes() == Path("newer.json").read_bytes()
    assert capsys.readouterr().err.splitlines()[-1] == "0 errors, 0 warnings, 0 notes in 1 document"
    assert run(["upgrade", "new.json", "--output", "new.json"]) == 0, "a document may be replaced by itself"
    assert sorted(os.listdir()) == ["bad.json", "cut.json", "empty", "good.json", "new.json", "newer.json", "warn.json"]


def test_upgrade_to_another_version_is_rejected(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["upgrade", "good.json", "--to", "1.0-rc3"]) == 2
    assert "[unknown-specversion]" in capsys.readouterr().err
    assert run(["upgrade", "good.json", "--output", "nowhere/x.json"]) == 2
    assert "[unwritable-file]" in capsys.readouterr().err
    assert run(["upgrade", "cut.json"]) == 2
    assert run(["upgrade", ".", "--output", "all.json"]) == 2, "a folder is upgraded whole or not at all"
    assert not Path("all.json").exists()


def test_installed_command_runs() -> None:
    script = "import sys; from wirebook.cli import main; main(sys.argv[1:])"
    process = subprocess.run(
        [sys.executable, "-c", script, "lint", "bad.json"], capture_output=True, text=True, check=False
    )
    assert process.returncode == 1
    assert process.stdout.startswith("bad.json:6:6: error bad-media-type")


def test_schema_is_printed_or_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema"]) == 0
    printed = capsys.readouterr().out
    assert json.loads(printed)["properties"].keys() >= {"messagegroups", "schemagroups", "endpoints"}
    assert run(["schema", "--output", str(tmp_path / "catalog.schema.json")]) == 0
    assert (tmp_path / "catalog.schema.json").read_text() == printed


def test_file_that_cannot_be_replaced_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(WirebookError, match=r"unwritable-file: '.*out' cannot be written: Is a directory"):
        write_whole("text", tmp_path / "out")
    assert not list(tmp_path.glob(".out*"))
