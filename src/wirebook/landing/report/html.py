"""Writes the report of a run as one HTML page.

    DIR/_wirebook/reports/<first>-<last>.html     by the numbers of the batches

The page needs no script, no network and no other file. Values of messages are displayed as plain text: Jinja2 escapes
them, and `visible` shows characters that are not printable as escapes.

Spec: docs/land.md#the-report; docs/decisions/0063
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from wirebook.core.counting import counted
from wirebook.landing.report.column_statistics import MAX_VALUES, FieldStatistics, TableStatistics
from wirebook.landing.report.reasons import format_actual, format_expected
from wirebook.landing.report.run_statistics import RunStatistics, run_statistics
from wirebook.landing.report.timeline import Timeline
from wirebook.landing.stores.locations import AnyPath, Location, location_of
from wirebook.landing.stores.records import records_of, write_atomically
from wirebook.problems import CODES

__all__ = ["html_report", "visible", "write_report"]

MAX_DEFINITIONS = 200
MAX_FIELD_ROWS = 2000
MAX_TEXT = 200
CHART_WIDTH, CHART_HEIGHT = 900, 160


def write_report(folder: AnyPath, batches: Collection[int] | None = None, to: Path | None = None) -> Location:
    """Write the report of these batches, or of all, to the file `to` or into the target; return its path.

    Raises: WirebookError (``no-target``, ``unknown-batch``, ``unwritable-target``).
    """
    statistics = run_statistics(folder, batches)
    root = location_of(folder)
    page = html_report(statistics, root.absolute().name).encode()
    if to is not None:
        write_atomically(to, page)
        return to
    first, last = _batch_range(statistics)
    name = f"reports/{first}.html" if first == last else f"reports/{first}-{last}.html"
    records = records_of(root)
    records.write(name, page)
    return records.location(name)


def html_report(statistics: RunStatistics, name: str) -> str:
    """The HTML page. Tables, fields, reasons, examples and texts are limited; the page says how many are left out."""
    return (
        _environment()
        .get_template("report.html.jinja")
        .render(
            name=name,
            statistics=statistics,
            summary=_summary(statistics),
            chart=_chart(statistics.timeline) if statistics.timeline else None,
            figures=list(_figures(statistics)),
            outcomes=_outcomes(statistics),
            definitions=_definitions(statistics),
            max_definitions=MAX_DEFINITIONS,
            max_values=MAX_VALUES,
            tables=list(_tables(statistics)),
            missing_files=sum(table.gone for table in statistics.tables) + statistics.dead_letters.gone,
            format_expected=format_expected,
            format_actual=format_actual,
        )
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("wirebook.landing.report"),
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "visible": visible,
        "plain_text": _plain_text,
        "number": lambda value: f"{value:,}",
        "share": _share,
        "counted": counted,
        "bytes": _bytes,
        "bar_parts": _bar_parts,
        "title_of": _title_of,
        "moment": _moment,
        "duration": lambda length: _duration(length.total_seconds()),
    }
    return environment


# -- content ----------------------------------------------------------------------------------------------------------


def _batch_range(statistics: RunStatistics) -> tuple[int, int]:
    return (statistics.batches[0], statistics.batches[-1]) if statistics.batches else (0, 0)


def _summary(statistics: RunStatistics) -> str:
    """Batches, receive times, durations, endpoints and catalogues in one line."""
    first, last = _batch_range(statistics)
    parts = [f"batch {first}" if first == last else f"batches {first} to {last}"]
    times = [moment for table in statistics.tables for moment in (table.first, table.last) if moment is not None]
    if times:
        parts.append(f"messages received from {_moment(min(times))} to {_moment(max(times))}")
    if statistics.started is not None and statistics.ended is not None and statistics.seconds is not None:
        started, ended = (_moment(moment.replace(microsecond=0)) for moment in (statistics.started, statistics.ended))
        length = "the batch took" if len(statistics.batches) == 1 else "the batches took"
        parts.append(f"{length} {_duration(statistics.seconds)} (from {started} to {ended})")
    parts += [f"endpoint {xid}" for xid in statistics.endpoints[:3]]
    parts += [f"catalogue {fingerprint[:12]}" for fingerprint in statistics.catalogues[:3]]
    return "; ".join(parts)


def _figures(statistics: RunStatistics) -> Iterator[tuple[int, str]]:
    """The figures at the top of the page, with labels. Figures that are 0 are left out, except `landed`."""
    for value, singular, plural in (
        (statistics.read, "message read", "messages read"),
        (statistics.landed, "landed", "landed"),
        (statistics.dead_letters.rows, "dead letter", "dead letters"),
        (statistics.repeated, "repeated", "repeated"),
        (statistics.late, "late event", "late events"),
        (statistics.resolved, "resolved", "resolved"),
        (statistics.empty, "empty batch", "empty batches"),
        (statistics.sources, "source file", "source files"),
    ):
        if value or singular == "landed":
            yield value, singular if value == 1 else plural


def _outcomes(statistics: RunStatistics) -> Counter[str]:
    """The number of messages by outcome."""
    counts = +Counter({"matched": statistics.landed, "repeated": statistics.repeated})
    for (_, outcome), count in statistics.dead_letters.outcomes.items():
        counts[outcome] += count
    return counts


def _definitions(statistics: RunStatistics) -> list[tuple[str, Counter[str]]]:
    """Outcomes by definition, most messages first. Dead letters without a definition count for the closest one."""
    xids = {table.name: table.definition or table.name for table in statistics.tables}
    counts: dict[str, Counter[str]] = {}
    for name, rows in statistics.rows.items():
        counts.setdefault(xids.get(name, name), Counter())["matched"] += rows
    for (definition, outcome), count in statistics.dead_letters.outcomes.items():
        counts.setdefault(definition or "(no similar definition)", Counter())[outcome] += count
    return sorted(counts.items(), key=lambda item: (-item[1].total(), item[0]))


def _tables(statistics: RunStatistics) -> Iterator[tuple[TableStatistics, list[FieldStatistics]]]:
    """Each table with the fields that the page shows. The total number of fields is limited."""
    left = MAX_FIELD_ROWS
    for table in statistics.tables:
        fields = list(table.fields.values())[:left]
        left -= len(fields)
        yield table, fields


@dataclass(frozen=True, slots=True)
class Chart:
    """A bar chart of a timeline. Each interval has a bar for landed messages, and one for dead letters on top of it.

    Shape: `bars` are (class, x, y, width, height). `top` is the number of messages at the upper edge.
    """

    timeline: Timeline
    top: int
    bars: list[tuple[str, str, str, str, str]]
    title: str
    description: str


def _chart(timeline: Timeline) -> Chart:
    """The chart of a timeline. The bar of a count that is not 0 is at least one pixel high."""
    top = _round_up(max(landed + dead for _, landed, dead in timeline.intervals()))
    bars = []
    pitch = CHART_WIDTH / len(timeline)
    width = max(pitch - min(2.0, pitch / 4), 0.5)
    for number, (_, landed, dead) in enumerate(timeline.intervals()):
        y = float(CHART_HEIGHT)
        for class_, count in (("good", landed), ("bad", dead)):
            if count:
                height = max(count / top * CHART_HEIGHT, 1.0)
                y = max(y - height, 0.0)
                bars.append((class_, f"{number * pitch:.1f}", f"{y:.1f}", f"{width:.1f}", f"{height:.1f}"))
    landed, dead, step = sum(timeline.landed), sum(timeline.dead), _duration(timeline.step.total_seconds())
    end = timeline.start + len(timeline) * timeline.step
    description = (
        f"From {_moment(timeline.start)} to {_moment(end)}: {landed:,} landed and "
        f"{counted(dead, 'dead letter')}, at most {top:,} messages per interval of {step}."
    )
    return Chart(timeline, top, bars, f"Messages per {step}, by the time at which they were received", description)


def _round_up(count: int) -> int:
    """The smallest round number that is at least `count`: a multiple of half its power of ten, such as 150 for 123."""
    unit: int = 10 ** max(len(str(count)) - 1, 0)
    return next(top for half in range(2, 21) if (top := -(-half * unit // 2)) >= count)


# -- filters ----------------------------------------------------------------------------------------------------------


def visible(text: str, limit: int = MAX_TEXT, *, lines: bool = False) -> str:
    """The text, cut to `limit` characters, with invisible characters as escapes; with `lines`, LFs are kept."""
    cut = text if len(text) <= limit else f"{text[: limit - 1]}…"
    if cut.isprintable():
        return cut
    allowed = "\n" if lines else ""
    return "".join(
        char if char.isprintable() or char in allowed else char.encode("unicode_escape", "surrogatepass").decode()
        for char in cut
    )


def _plain_text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    if isinstance(value, float):
        return str(value + 0.0)  # Parquet footers have -0.0 where zero is the lowest value
    return value.isoformat() if isinstance(value, datetime | date | time) else str(value)


def _moment(moment: datetime) -> str:
    """A time in UTC, without seconds and fractions that are zero."""
    text = moment.isoformat(sep=" ", timespec="microseconds").removesuffix("+00:00").removesuffix("000")
    return f"{text.removesuffix('.000').removesuffix(':00')} UTC"


def _duration(seconds: float) -> str:
    """A duration in the largest unit in which it is at least 1, rounded to one decimal digit."""
    for unit, length in (("week", 604_800), ("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1)):
        if seconds >= length:
            number = round(seconds / length, 1)
            return counted(int(number), unit) if number == int(number) else f"{number} {unit}s"
    return f"{seconds * 1000:.3g} milliseconds"


def _share(count: int, total: int) -> str:
    """A percentage, which is 0 or 100 only if that is exact."""
    if not total or count in (0, total):
        return "100 %" if count else "0 %"
    return f"{min(max(100 * count / total, 0.01), 99.99):.2f} %"


def _bytes(size: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            return counted(int(size), "byte") if unit == "bytes" else f"{size:,.1f} {unit}"
        size /= 1024
    return ""


def _bar_parts(shares: Sequence[tuple[str, float]], width: int) -> Iterator[tuple[str, str, str]]:
    """(class, x, width) of the rectangles of a bar; a share that is not 0 is at least one pixel wide."""
    x = 0.0
    for class_, share in shares:
        if share > 0:
            length = max(share * width, 1.0)
            yield class_, f"{min(x, width - length):.1f}", f"{length:.1f}"
            x += length


def _title_of(code: str) -> str:
    """The title of a problem code as a sentence."""
    title = CODES[code].title if code in CODES else code
    return f"{title[:1].upper()}{title[1:]}"
