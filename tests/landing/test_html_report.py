"""The report of a run: statistics compared with the rows, hostile payloads, limits, and the HTML page."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wirebook.catalog import Catalog
from wirebook.cli.app import run
from wirebook.landing.job import catalogue_of
from wirebook.landing.report.column_statistics import (
    MAX_VALUES,
    PlaceholderStatistics,
    payload_columns,
    placeholder_columns,
    table_statistics,
)
from wirebook.landing.report.dead_letter_statistics import MAX_EXAMPLES, dead_letter_statistics
from wirebook.landing.report.html import html_report, visible, write_report
from wirebook.landing.report.run_statistics import committed_batches, run_statistics
from wirebook.landing.report.timeline import group_times
from wirebook.landing.runs.engine import engine_for
from wirebook.landing.runs.land import land_files
from wirebook.landing.runs.settings import RunSettings
from wirebook.landing.runs.target import Target
from wirebook.landing.tables.layout import DEAD_LETTER_SCHEMA
from wirebook.problems import CODES, WirebookError

Workspace = Any

READING = "/messagegroups/g/messages/reading"
DOCUMENT = {
    "messagegroups": {
        "g": {
            "messages": {
                "reading": {
                    "protocol": "MQTT/5.0",
                    "protocoloptions": {"topic_name": "plants/{plant}/{line}"},
                    "dataschemaformat": "JsonSchema/draft-07",
                    "dataschema": {
                        "type": "object",
                        "properties": {
                            "celsius": {"type": "number"},
                            "count": {"type": "integer"},
                            "tags": {"type": "array", "items": {"type": "string"}},
                            "unit": {"type": "object", "properties": {"name": {"type": "string"}}},
                        },
                        "required": ["celsius"],
                    },
                }
            }
        }
    }
}
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</style><script>alert(2)</script>",
    "</td></table><h1>owned</h1>",
    "javascript:alert(1)",
    "&lt;b&gt; &amp; &#60;",
    "\u202egnp.exe\u2066\x1b[31m\x00\x07\r\n",
    "]]> <!-- <![CDATA[",
    "url(http://example.com/x)",
    "x" * 100_000,
]


def message(topic: str, body: Any) -> bytes:
    payload = body if isinstance(body, str) else json.dumps(body)
    return json.dumps(
        {"protocol": "MQTT/5.0", "received": "2026-01-05T08:00:00Z", "topic": topic, "payload": payload}
    ).encode()


def land(workspace: Workspace, *lines: bytes, name: str = "a.jsonl", **settings: Any) -> set[int]:
    """Lands by the real engine, in this process; the batches that came of it."""
    before = committed_batches(workspace.to)
    workspace.write(name, b"\n".join(lines) + b"\n")
    loaded = Catalog.load(DOCUMENT)
    landing = RunSettings(runner=workspace.runner, factory=engine_for, **settings)
    land_files(landing, workspace.source, catalogue_of(loaded), Target(workspace.to))
    return committed_batches(workspace.to) - before


READINGS = [
    message(f"plants/p{n % 3}/l{n}", {"celsius": n - 5, "tags": ["a"] * (n % 3)} | ({"count": n} if n % 4 == 0 else {}))
    for n in range(20)
]
BROKEN = [
    message("plants/p1/l1", {"celsius": "hot"}),
    message("plants/p1/l1", {"celsius": "cold"}),
    message("plants/p1/l1", {"count": 1}),
    message("plants/p1", {"celsius": 1}),
    message("plants/p1/l1", "{"),
    b"nothing",
]


class Page(HTMLParser):
    """The elements, attributes and texts that a browser would see."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


# -- facts ------------------------------------------------------------------------------------------------------------


def test_statistics_equal_those_of_the_rows(workspace: Workspace) -> None:
    batches = land(workspace, *READINGS, *BROKEN)
    statistics = run_statistics(workspace.to, batches)
    assert (statistics.read, statistics.landed, statistics.dead_letters.rows, statistics.sources) == (26, 20, 6, 1)
    (table,) = statistics.tables
    rows = workspace.rows(table.name)
    assert (table.definition, table.rows) == (READING, len(rows))
    fields = {field.path: field for field in table.fields.values()}
    for name in ("celsius", "count"):
        values = [row[name] for row in rows if row[name] is not None]
        assert (fields[name].filled, fields[name].lowest, fields[name].highest) == (
            len(values),
            min(values),
            max(values),
        )
    assert fields["tags[]"].filled == sum(len(row["tags"] or ()) for row in rows)
    assert (fields["unit.name"].filled, fields["unit.name"].lowest) == (0, None)
    for name, placeholder in table.placeholders.items():
        assert placeholder.values == Counter(row[name] for row in rows)
    assert {placeholder.distinct for placeholder in table.placeholders.values()} == {3, 20}


@pytest.mark.parametrize("table_format", ["parquet", "delta", "iceberg"])
@pytest.mark.parametrize("stage_below", [0, 1000])
def test_statistics_are_equal_in_all_table_formats(
    workspace: Workspace, tmp_path: Path, table_format: str, stage_below: int
) -> None:
    plain = run_statistics(workspace.to, land(workspace, *READINGS, *BROKEN))
    workspace.to = tmp_path / "other"
    statistics = run_statistics(
        workspace.to, land(workspace, *READINGS, *BROKEN, table_format=table_format, stage_below=stage_below)
    )
    assert (statistics.rows, statistics.dead_letters) == (plain.rows, plain.dead_letters)
    assert statistics.timeline == plain.timeline is not None
    table, expected = statistics.tables[0], plain.tables[0]
    assert (table.rows, table.staged, table.fields) == (20, 20 if stage_below else 0, expected.fields)
    assert (table.placeholders, table.first, table.last) == (expected.placeholders, expected.first, expected.last)
    assert ("20 staged" in html_report(statistics, "x")) is (stage_below > 0)


def test_dead_letter_statistics_equal_those_of_the_rows(workspace: Workspace) -> None:
    statistics = run_statistics(workspace.to, land(workspace, *READINGS, *BROKEN)).dead_letters
    letters = workspace.rows("dead_letters")
    reasons = Counter((p["code"], p["slot"] or "") for row in letters for p in row["problems"])
    assert statistics.reasons == reasons
    outcomes = Counter(
        (row["definition"] or (row["near"] or [{"definition": ""}])[0]["definition"], row["outcome"]) for row in letters
    )
    assert statistics.outcomes == outcomes
    hot = statistics.examples["payload-invalid", "payload#/celsius"]
    assert [(example.line, example.actual, example.definition) for example in hot] == [
        (21, "hot", READING),
        (22, "cold", READING),
    ]
    assert hot[0].raw == BROKEN[0]


def test_examples_are_limited_and_distinct(tmp_path: Path) -> None:
    reason = {"code": "payload-invalid", "slot": "payload#", "expected": None, "actual": None}
    letters = [
        {"_file": "f", "_line": n, "_index": 0, "raw": b"%d" % n, "outcome": "invalid-payload", "definition": None,
         "problems": [reason, reason], "near": []} for n in range(50_000)
    ]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(letters, DEAD_LETTER_SCHEMA), tmp_path / "x.parquet", row_group_size=7_000)
    statistics = dead_letter_statistics([tmp_path / "x.parquet", tmp_path / "gone.parquet"])
    assert (statistics.rows, statistics.gone) == (50_000, 1)
    assert statistics.reasons == {("payload-invalid", "payload#"): 50_000}
    assert [example.line for example in statistics.examples["payload-invalid", "payload#"]] == [0, 1, 2][:MAX_EXAMPLES]
    assert [example.raw for example in statistics.examples["payload-invalid", "payload#"]] == [b"0", b"1", b"2"][
        :MAX_EXAMPLES
    ]


@pytest.mark.parametrize("column", ["raw", "outcome"])
def test_damaged_column_of_dead_letters_is_counted_once(workspace: Workspace, column: str) -> None:
    batches = land(workspace, *READINGS, *BROKEN)
    whole = run_statistics(workspace.to, batches).dead_letters
    (file,) = workspace.to.glob("dead_letters/*.parquet")
    group = pq.read_metadata(file).row_group(0)
    chunk = next(chunk for chunk in map(group.column, range(group.num_columns)) if chunk.path_in_schema == column)
    with file.open("r+b") as opened:
        opened.seek(chunk.dictionary_page_offset or chunk.data_page_offset)
        opened.write(b"\xff" * chunk.total_compressed_size)
    statistics = run_statistics(workspace.to, batches)
    assert (whole.gone, statistics.dead_letters.gone) == (0, 1)
    assert "missing or cannot be read" in html_report(statistics, "x")
    if column == "raw":
        assert statistics.dead_letters.reasons == whole.reasons
        assert statistics.dead_letters.examples == {
            reason: [replace(example, raw=None) for example in examples] for reason, examples in whole.examples.items()
        }


def test_statistics_of_one_batch_exclude_other_batches(workspace: Workspace) -> None:
    first = land(workspace, *READINGS)
    second = land(workspace, *BROKEN, name="b.jsonl")
    assert run_statistics(workspace.to, first).read == 20
    assert run_statistics(workspace.to, second).landed == 0
    whole = run_statistics(workspace.to)
    assert (whole.read, whole.landed, whole.batches) == (26, 20, (*first, *second))
    with pytest.raises(WirebookError, match="unknown-batch"):
        run_statistics(workspace.to, [9])
    with pytest.raises(WirebookError, match="no-target"):
        run_statistics(workspace.source / "none")


def test_missing_files_are_counted(workspace: Workspace) -> None:
    batches = land(workspace, *READINGS)
    for file in workspace.to.glob("g__reading/*.parquet"):
        file.unlink()
    statistics = run_statistics(workspace.to, batches)
    assert [table.gone for table in statistics.tables] == [1]
    assert "missing or cannot be read" in html_report(statistics, "x")


def test_file_that_is_deleted_while_it_is_read(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = land(workspace, *READINGS)
    (file,) = workspace.to.glob("g__reading/*.parquet")
    size = file.stat().st_size

    def delete_and_read(*arguments: Any) -> Any:
        file.unlink()
        return group_times(*arguments)

    monkeypatch.setattr("wirebook.landing.report.column_statistics.group_times", delete_and_read)
    (table,) = run_statistics(workspace.to, batches).tables
    assert (table.rows, table.size, table.gone) == (20, size, 0)


def test_columns_are_assigned_to_sections() -> None:
    names = ["_file", "_line", "ce_id", "ce_rest", "ctx_a", "ctx_b", "value", "ctx_c", "ce_x", "_rest", "_tombstone"]
    assert placeholder_columns(names) == ["ctx_a", "ctx_b"]
    assert payload_columns(names) == ["value", "ctx_c", "ce_x", "_rest"]


def test_placeholder_with_many_values_stops_counting() -> None:
    statistics = PlaceholderStatistics("x")
    for start in range(0, 3 * MAX_VALUES, MAX_VALUES // 2):
        statistics.add(pa.array([str(n) for n in range(start, start + MAX_VALUES // 2)]))
    assert statistics.many
    assert statistics.distinct <= 2 * MAX_VALUES
    assert statistics.rows == 3 * MAX_VALUES


def test_number_of_fields_is_limited(tmp_path: Path) -> None:
    pq.write_table(pa.table({f"f.{n}": [n] for n in range(500)}), tmp_path / "x.parquet")
    statistics = table_statistics("t", None, [tmp_path / "x.parquet"])
    assert (len(statistics.fields), len(statistics.more_fields)) == (200, 300)
    assert next(iter(statistics.fields.values())).path == "f.0"


# -- the page ---------------------------------------------------------------------------------------------------------


def test_page_has_no_scripts_links_or_external_resources(workspace: Workspace) -> None:
    path = write_report(workspace.to, land(workspace, *READINGS, *BROKEN))
    assert path == workspace.to / "_wirebook" / "reports" / "1.html"
    page = Page(path.read_text())
    assert not {"script", "link", "img", "iframe", "object", "base", "form", "a"} & page.tags.keys()
    assert not [
        attribute
        for attribute in page.attributes
        if attribute[0].startswith("on") or attribute[0] in ("src", "href", "style")
    ]
    assert "http" not in path.read_text().partition("<style>")[2].partition("</style>")[0]
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'") in page.attributes
    assert "prefers-color-scheme: dark" in path.read_text()
    text = " ".join(page.texts)
    for expected in (
        "messages read",
        "76.92 %",
        "3 invalid-payload",
        "payload#/celsius",
        READING,
        "plants/{plant}/{line}",
    ):
        assert expected in text, expected


@pytest.mark.parametrize(("copies", "counted"), [(1, "1 message"), (2, "2 messages")])
def test_reasons_are_sentences_with_correct_plurals(workspace: Workspace, copies: int, counted: str) -> None:
    broken = [message(f"plants/p/l{number}", {"celsius": "x"}) for number in range(copies)]
    page = Page(write_report(workspace.to, land(workspace, *broken)).read_text())
    text = " ".join(" ".join(page.texts).split())
    title = CODES["payload-invalid"].title
    assert f"{title[:1].upper()}{title[1:]} in payload#/celsius : {counted}, 100 % ( payload-invalid )" in text
    assert f" {copies} dead letter{'s' * (copies > 1)} 1 source file " in text
    assert ("messages read" in text) is (copies > 1)


def test_hostile_messages_are_escaped(workspace: Workspace) -> None:
    """Placeholders, payload values, names of members, topics, endpoints, whole lines."""
    clean = Page(write_report(workspace.to, land(workspace, *READINGS[:3], *BROKEN)).read_text())
    lines = [
        message(f"plants/{text.replace('/', '|').replace('+', '').replace('#', '')}/l", {"celsius": 1})
        for text in HOSTILE
    ]
    lines += [message("plants/p/l", {"celsius": text}) for text in HOSTILE]
    lines += [message("plants/p/l", {"celsius": 1, "unit": {"name": text}}) for text in HOSTILE]
    lines += [message(text, text) for text in HOSTILE] + [text.encode().replace(b"\n", b" ") for text in HOSTILE]
    path = write_report(workspace.to, land(workspace, *lines, name="<img src=x>.jsonl"))
    text = path.read_text()
    page = Page(text)
    assert page.tags.keys() <= clean.tags.keys() | {"pre", "details", "summary"}
    assert {name for name, _ in page.attributes} <= {name for name, _ in clean.attributes} | {"open"}
    assert not set(text) & {"\x00", "\x07", "\x1b", "\r", "\u202e", "\u2066"}
    assert "<script>alert(1)</script>" in "".join(page.texts)
    assert len(text) < 200_000


def test_page_size_is_limited(workspace: Workspace) -> None:
    lines = [message("plants/p/l", {"celsius": "x" * 5000, f"m{n}" * 50: n}) for n in range(300)]
    assert len(write_report(workspace.to, land(workspace, *lines)).read_text()) < 100_000


def test_visible_escapes_invisible_characters() -> None:
    assert visible("plain é 😀") == "plain é 😀"
    assert visible("a\u202eb\x1b\ud800\n") == "a\\u202eb\\x1b\\ud800\\n"
    assert visible("a\nb", lines=True) == "a\nb"
    assert visible("x" * 300, 10) == "x" * 9 + "…"


# -- the command ------------------------------------------------------------------------------------------------------


def test_report_command_writes_the_page(
    workspace: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    land(workspace, *READINGS)
    output = tmp_path / "page.html"
    assert run(["report", str(workspace.to), "--output", str(output)]) == 0
    assert capsys.readouterr().out == f"{output}\n"
    assert output.read_text().startswith("<!doctype html>")
    assert run(["report", str(workspace.to), "--batch", "7"]) == 2
    assert "unknown batch 7" in capsys.readouterr().err
    assert run(["report", str(workspace.source)]) == 2
    assert "no-target" in capsys.readouterr().err
    assert run(["report", str(workspace.to), "--output", str(tmp_path / "no" / "x.html")]) == 2
    assert "unwritable-target" in capsys.readouterr().err
