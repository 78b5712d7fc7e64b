"""`wirebook explain`: readable and JSON output for any message."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from wirebook.cli.app import run
from wirebook.cli.explain import aligned
from wirebook.definitions.compile.uritemplate import NATS_SUBJECT, TEXT, TemplateContext, parse_template
from wirebook.definitions.explain.alignment import align

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
BIKES = ["--catalog", str(EXAMPLES / "bikes.xreg.json")]
CAPTURE = str(EXAMPLES / "captures" / "kafka.jsonl")
HOSTILE = "docks/17/\x1b[2J\x1b]0;x\x07/st\u202eatus\r\n"


def explain(*arguments: str) -> int:
    return run(["explain", *arguments, *BIKES])


def dock(topic: str) -> dict[str, Any]:
    return {"protocol": "MQTT/5.0", "topic": topic, "payload": "x"}


def test_every_message_of_a_capture_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert explain(CAPTURE) == 0
    out, err = capsys.readouterr()
    heads = [line for line in out.splitlines() if line.startswith("kafka.jsonl:")]
    assert [head.split(": ")[1] for head in heads] == ["matched", "matched", "invalid-payload", "unexpected"]
    assert err == ""


def test_options_select_messages(capsys: pytest.CaptureFixture[str]) -> None:
    assert explain(CAPTURE, "--failed", "--limit", "1") == 0
    out, err = capsys.readouterr()
    assert out.startswith("kafka.jsonl:3: invalid-payload")
    assert "there are more messages" in err
    assert explain(CAPTURE, "--line", "4") == 0
    assert capsys.readouterr().out.startswith("kafka.jsonl:4: unexpected")
    assert explain(CAPTURE, "--line", "9") == 2
    assert "no such message in line 9" in capsys.readouterr().err
    assert explain(CAPTURE, "--endpoint", "/endpoints/none") == 2
    assert "unknown-endpoint" in capsys.readouterr().err


def test_template_is_aligned_with_the_value(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(dock("dock/17/3/status")).encode())))
    assert explain("-") == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == "-:1: unexpected: no definition matches; one is close"
    assert "WRONG protocoloptions.topic_name  docks/{station}/{dock}/status" in lines
    assert lines[5:8] == ["dock /17       /3     /status", "^", "fix: set it to 'docks/17/3/status'"]


@pytest.mark.parametrize("form", [[], ["--full"], ["--json"]])
def test_control_characters_are_escaped(form: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capture = tmp_path / "hostile.jsonl"
    event = {
        "protocol": "KAFKA",
        "topic": "rides",
        "key": HOSTILE,
        "headers": [[f"ce_{HOSTILE}", HOSTILE]],
        "value": HOSTILE,
    }
    lines = [json.dumps(dock(HOSTILE)), json.dumps(dock("a/" * 20_000)), json.dumps(event), HOSTILE.strip(), "[" * 900]
    capture.write_bytes("\n".join(lines).encode())
    assert explain(str(capture), *form) == 0
    out = capsys.readouterr().out
    lines_out = out.removesuffix("\n").split("\n")
    assert all(json.loads(line) if form == ["--json"] else line.isprintable() for line in lines_out)
    assert "\x1b" not in out
    assert len(out) < 60_000


def test_json_contains_that_of_match(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["match", CAPTURE, *BIKES, "--json"]) == 0
    matched = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert explain(CAPTURE, "--json") == 0
    explained = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    more = {"reason", "advice", "comparisons"}
    assert [
        {name: value for name, value in explanation.items() if name not in more} for explanation in explained
    ] == matched
    assert all(more <= explanation.keys() for explanation in explained)


def test_json_has_the_documented_members(capsys: pytest.CaptureFixture[str]) -> None:
    assert explain(CAPTURE, "--json") == 0
    comparisons = [
        comparison for line in capsys.readouterr().out.splitlines() for comparison in json.loads(line)["comparisons"]
    ]
    slots = [slot for comparison in comparisons for slot in comparison["slots"]]
    payloads = [comparison["payload"] for comparison in comparisons if comparison["payload"]]
    assert members(comparisons) == {"definition", "role", "bindings", "rank", "slots", "payload"}
    assert members(slots) == {"slot", "verdict", "expected", "actual", "problem", "parts", "remedy", "nearest"}
    assert members([slot["problem"] for slot in slots if slot["problem"]]) == {"code", "message"}
    assert members([part for slot in slots for part in slot["parts"]]) == {"template", "value", "fits"}
    assert members(payloads) == {"format", "outcome", "faults"}
    faults = [fault for payload in payloads for fault in payload["faults"]]
    assert members(faults) == {"code", "path", "value", "rule", "message", "remedy", "nearest"}


def members(values: list[dict[str, Any]]) -> set[str]:
    """The members that all of some objects have; there is one at least."""
    (names,) = {frozenset(value) for value in values}
    return set(names)


@pytest.mark.parametrize(
    ("template", "place", "text", "lines"),
    [
        ("a/{x}/c", TEXT, "a/long/c", ["a/{x} /c", "a/long/c"]),
        ("a.{x}.c", NATS_SUBJECT, "a.b", ["a.{x}.c", "a.b", "      ^"]),
        ("rides.started", TEXT, "rides.startd", ["rides.started", "rides.startd", "           ^"]),
        ("a/{x}/c", TEXT, "a/b/d/c", ["a  /{x}/c", "a/b/d  /c", "  ^"]),
        ("a/{x}/c", TEXT, "a//c", ["a/{x}/c", "a/   /c", "  ^^^"]),
        ("{x}/bc", TEXT, "東京/bd", ["{x} /bc", "東京/bd", "      ^"]),  # wide ones take two columns
        ("{x}/bc", TEXT, "e\u0301/bd", ["{x}/bc", "e\u0301  /bd", "     ^"]),  # combining ones none
        ("{x}/bc", TEXT, "\x1b\u200d/bd", ["{x}       /bc", "\\x1b\\u200d/bd", "            ^"]),
    ],
)
def test_segments_are_aligned_with_carets(template: str, place: TemplateContext, text: str, lines: list[str]) -> None:
    assert list(aligned(align(parse_template(template, place), text), place.separator)) == lines


@pytest.mark.parametrize("command", ["match", "explain"])
@pytest.mark.parametrize(
    ("lines", "options", "code"),
    [
        ((1, 2), ["--fail-on", "unmatched"], 0),
        ((1, 2), ["--fail-on", "problems"], 0),
        ((1, 3), [], 0),
        ((1, 3), ["--fail-on", "unmatched"], 1),
        ((1, 3), ["--fail-on", "problems"], 1),
        ((4,), ["--fail-on", "unmatched", "--json"], 1),
        ((), ["--fail-on", "problems"], 0),
        ((1,), ["--fail-on", "warning"], 2),
    ],
)
def test_fail_on_sets_the_exit_code(
    command: str, lines: tuple[int, ...], options: list[str], code: int, tmp_path: Path
) -> None:
    every = Path(CAPTURE).read_text().splitlines(keepends=True)
    capture = tmp_path / "some.jsonl"
    capture.write_text("".join(every[line - 1] for line in lines))
    assert run([command, str(capture), *BIKES, *options]) == code


@pytest.mark.parametrize("command", ["match", "explain"])
def test_fail_on_problems_counts_those_of_matched_messages(command: str, tmp_path: Path) -> None:
    record = json.loads(Path(CAPTURE).read_text().splitlines()[0])
    (tmp_path / "odd.jsonl").write_text(json.dumps(record | {"color": "red"}))
    arguments = [command, str(tmp_path / "odd.jsonl"), *BIKES, "--fail-on"]
    assert [run([*arguments, choice]) for choice in ("unmatched", "problems")] == [0, 1]


def test_fail_on_counts_messages_beyond_the_limit() -> None:
    assert explain(CAPTURE, "--limit", "1", "--fail-on", "unmatched") == 1
    assert explain(CAPTURE, "--line", "1", "--fail-on", "unmatched") == 0
