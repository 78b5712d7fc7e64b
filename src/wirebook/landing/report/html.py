"""The report of a run as one HTML page, and where it is stored.

    DIR/_wirebook/reports/<first>-<last>.html     by the batch numbers of the run

Spec: docs/land.md#the-report; docs/decisions/0063
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from datetime import date, datetime, time
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from wirebook.core.counting import counted
from wirebook.landing.report.column_statistics import (
    MAX_VALUES,
    FieldStatistics,
    PlaceholderStatistics,
    TableStatistics,
)
from wirebook.landing.report.dead_letter_statistics import DeadLetterStatistics, Example
from wirebook.landing.report.page import bar, code, element, grid, page, visible
from wirebook.landing.report.reasons import format_actual, format_expected
from wirebook.landing.report.run_statistics import RunStatistics, run_statistics
from wirebook.landing.runs.target import write_atomically
from wirebook.problems import CODES

__all__ = ["html_report", "write_report"]

MAX_DEFINITIONS = 200
MAX_FIELD_ROWS = 2000
RAW_SHOWN = 500


def write_report(folder: Path, batches: Collection[int] | None = None, to: Path | None = None) -> Path:
    """Write the report of some batches, or of all, and return its path.

    Raises: WirebookError (``no-target``, ``unknown-batch``, ``unwritable-target``).
    """
    statistics = run_statistics(folder, batches)
    path = to or _place(folder, statistics)
    if to is None:
        path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, html_report(statistics, folder.resolve().name).encode())
    return path


def _place(folder: Path, statistics: RunStatistics) -> Path:
    first, last = (statistics.batches[0], statistics.batches[-1]) if statistics.batches else (0, 0)
    name = f"{first}.html" if first == last else f"{first}-{last}.html"
    return folder / "_wirebook" / "reports" / name


def html_report(statistics: RunStatistics, name: str) -> str:
    """The page. Its size is bounded: tables, fields, reasons, examples and texts are, and what is left out is said."""
    sections = [
        *_head(statistics, name),
        *_outcomes(statistics),
        *_definitions(statistics),
        *_reasons(statistics.dead_letters),
    ]
    return page(f"Wirebook: {name}", *sections, *_tables(statistics))


# -- the whole run ----------------------------------------------------------------------------------------------------


def _head(statistics: RunStatistics, name: str) -> Iterator[Element]:
    yield element("h1", "Landed into ", code(name))
    yield element("p", _span(statistics), class_="faint")
    figures = (
        (statistics.read, "message read", "messages read"),
        (statistics.landed, "landed", "landed"),
        (statistics.dead_letters.rows, "dead letter", "dead letters"),
        (statistics.resolved, "resolved", "resolved"),
        (statistics.empty, "empty batch", "empty batches"),
        (statistics.sources, "source file", "source files"),
    )
    shown = (
        element("li", element("b", value), one if value == 1 else many)
        for value, one, many in figures
        if value or one == "landed"
    )
    yield element("ul", *shown, class_="figures")


def _span(statistics: RunStatistics) -> str:
    first, last = (statistics.batches[0], statistics.batches[-1]) if statistics.batches else (0, 0)
    parts = [f"batch {first}" if first == last else f"batches {first} to {last}"]
    times = [each for table in statistics.tables for each in (table.first, table.last) if each is not None]
    if times:
        parts.append(f"messages received from {_text(min(times))} to {_text(max(times))}")
    parts += [f"endpoint {xid}" for xid in statistics.endpoints[:3]]
    parts += [f"catalogue {fingerprint[:12]}" for fingerprint in statistics.catalogues[:3]]
    return visible("; ".join(parts), 1000)


def _outcomes(statistics: RunStatistics) -> Iterator[Element]:
    counts = Counter({"matched": statistics.landed}) if statistics.landed else Counter()
    for (_, outcome), count in statistics.dead_letters.outcomes.items():
        counts[outcome] += count
    total = counts.total() or 1
    rows = (
        (name, count, _share(count, total), bar([("good" if name == "matched" else "bad", count / total)], name))
        for name, count in counts.most_common()
    )
    yield element("h2", "Outcomes")
    yield grid(("outcome", "#messages", "#share", ""), rows) if counts else element("p", "No message was read.")


def _definitions(statistics: RunStatistics) -> Iterator[Element]:
    """Rates by definition and outcome; letters without a definition count for the nearest."""
    xids = {table.name: table.definition or table.name for table in statistics.tables}
    counts: dict[str, Counter[str]] = {}
    for name, rows in statistics.rows.items():
        counts.setdefault(xids.get(name, name), Counter())["matched"] += rows
    for (definition, outcome), count in statistics.dead_letters.outcomes.items():
        counts.setdefault(definition or "(none came near)", Counter())[outcome] += count
    ranked = sorted(counts.items(), key=lambda each: (-each[1].total(), each[0]))
    yield element("h2", "Definitions")
    yield grid(("definition", "#messages", "#matched", "", "else"), map(_definition, ranked[:MAX_DEFINITIONS]))
    yield from _left_out(len(ranked) - MAX_DEFINITIONS, "definition")


def _definition(ranked: tuple[str, Counter[str]]) -> tuple[Element | str | int, ...]:
    xid, counts = ranked
    total, matched = counts.total(), counts["matched"]
    others = ", ".join(f"{count:,} {name}" for name, count in counts.most_common() if name != "matched")
    picture = bar([("good", matched / total), ("bad", 1 - matched / total)], f"{matched:,} of {total:,}")
    return code(xid), total, _share(matched, total), picture, others


# -- dead letters -----------------------------------------------------------------------------------------------------


def _reasons(dead_letters: DeadLetterStatistics) -> Iterator[Element]:
    if not dead_letters.rows:
        return
    yield element("h2", "Why messages did not land")
    note = "If a message matches no definition, its slots are those of the nearest definition."
    yield element("p", note, class_="faint")
    for (name, slot), count in dead_letters.top():
        share = _share(count, dead_letters.rows)
        reason = CODES[name].title if name in CODES else name
        sentence = f"{reason[:1].upper()}{reason[1:]}"
        place = (" in ", code(slot)) if slot else ()
        counts = f": {counted(count, 'message')}, {share} (", code(name), ")"
        summary = element("summary", element("b", sentence), *place, *counts)
        examples = (_example(name, each) for each in dead_letters.examples.get((name, slot), ()))
        yield element("details", summary, *examples)
    yield from _left_out(len(dead_letters.reasons) - len(dead_letters.top()), "other reason")


def _example(name: str, example: Example) -> Element:
    index = f"[{example.index}]" if example.index else ""
    place = visible(f"{example.file}:{example.line}{index}")
    said = [element("p", code(place), "  ", code(example.definition or ""))]
    if example.expected is not None:
        said.append(element("p", "expected ", code(format_expected(name, example.expected))))
    if example.actual is not None:
        said.append(element("p", "got ", code(format_actual(name, example.actual))))
    raw = (example.raw or b"").decode(errors="backslashreplace")
    return element("div", *said, element("pre", visible(raw, RAW_SHOWN, lines=True)) if raw else None)


# -- tables -----------------------------------------------------------------------------------------------------------


def _tables(statistics: RunStatistics) -> Iterator[Element]:
    if not statistics.tables:
        return
    yield element("h2", "Tables")
    left = MAX_FIELD_ROWS
    for number, table in enumerate(statistics.tables):
        fields = list(table.fields.values())[:left]
        left -= len(fields)
        yield _table(table, fields, is_open=number < 3)
    yield from _left_out(len(statistics.rows) - len(statistics.tables), "table")
    gone = sum(table.gone for table in statistics.tables) + statistics.dead_letters.gone
    if gone:
        text = f"{counted(gone, 'file')} of these batches {'is' if gone == 1 else 'are'} missing or cannot be read."
        yield element("p", text, class_="faint")


def _table(table: TableStatistics, fields: list[FieldStatistics], *, is_open: bool) -> Element:
    size = counted(table.rows, "row") + (f", {_bytes(table.size)}" if table.size else "")
    size += f", {table.staged:,} staged" if table.staged else ""
    made = element("details", element("summary", element("b", visible(table.name)), f": {size}"))
    if is_open:
        made.set("open", "open")
    made.append(element("p", code(table.definition or ""), class_="faint"))
    if table.placeholders:
        made.append(grid(("placeholder", "#values", "most often"), map(_placeholder, table.placeholders.values())))
    if fields:
        rows = (_field(field, table.rows) for field in fields)
        made.append(grid(("payload field", "type", "#filled", "", "lowest", "highest"), rows))
    for note in _left_out(len(table.fields) - len(fields) + len(table.more_fields), "field"):
        made.append(note)
    return made


def _placeholder(statistics: PlaceholderStatistics) -> tuple[Element | str, ...]:
    shown = f"more than {MAX_VALUES:,}" if statistics.many else f"{statistics.distinct:,}"
    top = [("; ", code(value, 60), f" {_share(count, statistics.rows)}") for value, count in statistics.top()]
    return code(statistics.name), shown, element("span", *[part for each in top for part in each][1:])


def _field(statistics: FieldStatistics, rows: int) -> tuple[Element | str, ...]:
    ends = [_end(statistics.lowest), _end(statistics.highest)] if statistics.bounded else ["", ""]
    head = (code(statistics.path), statistics.type)
    if statistics.filled is None or not rows:
        return (*head, "not known", "", *ends)
    if statistics.repeated:
        return (*head, counted(statistics.filled, "value"), "", *ends)
    share = statistics.filled / rows
    return (
        *head,
        _share(statistics.filled, rows),
        bar([("bar", share)], f"{statistics.filled:,} of {rows:,}", 80),
        *ends,
    )


def _end(value: Any) -> Element | str:
    return "" if value is None else code(_text(value), 40)


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    if isinstance(value, float):
        return str(value + 0.0)  # files give -0.0 where a zero is the lowest
    return value.isoformat() if isinstance(value, datetime | date | time) else str(value)


def _left_out(count: int, what: str) -> Iterator[Element]:
    if count > 0:
        yield element("p", f"and {counted(count, f'more {what}')}", class_="faint")


def _share(count: int, total: int) -> str:
    """A share that is never rounded to all or nothing."""
    if not total or count in (0, total):
        return "100 %" if count else "0 %"
    return f"{min(max(100 * count / total, 0.01), 99.99):.2f} %"


def _bytes(size: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            return counted(int(size), "byte") if unit == "bytes" else f"{size:,.1f} {unit}"
        size /= 1024
    return ""
