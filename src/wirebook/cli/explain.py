"""`wirebook explain`: show slot by slot why a message matches a definition or not, and what would make it match.

Spec: docs/explain.md
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.cells import cell_len

from wirebook.cli.options import (
    CaptureArgument,
    CatalogOption,
    ConfluentOption,
    EndpointOption,
    FailOnOption,
    JsonLinesOption,
)
from wirebook.cli.output import GREEN, RED, print_json, print_note, printable, styled
from wirebook.cli.sources import check_standard_input, load_catalog, outcomes_of
from wirebook.core.counting import counted

if TYPE_CHECKING:
    from wirebook.definitions.explain.alignment import AlignedSegment
    from wirebook.definitions.explain.comparison import SlotReport
    from wirebook.definitions.explain.explanation import Comparison, Explanation
    from wirebook.definitions.explain.payload_faults import PayloadReport

LIMIT = 20
MAX_VALUE = 120
"""Maximum characters of a printed value."""
VERDICTS = {"fits": "fits", "wrong": "WRONG", "open": "open", "ignored": "-"}
STYLE_OF = {"fits": GREEN, "WRONG": RED}
VERDICT = re.compile(r"( {4})(fits|WRONG)(?= )")
CARETS = re.compile(r" {8,}[ ^]*\^[ ^]*")
ROLES = {"chosen": "chosen", "equal": "equally specific", "beaten": "less specific", "near": "close"}


def explain(  # noqa: PLR0917 (options)
    message: CaptureArgument,
    catalog: CatalogOption,
    endpoint: EndpointOption = None,
    line: Annotated[int | None, typer.Option(help="Explain only the messages of this line.", min=1)] = None,
    failed: Annotated[bool, typer.Option("--failed", help="Explain only messages that do not match.")] = False,
    limit: Annotated[int, typer.Option(help="Maximum number of messages.", min=1)] = LIMIT,
    full: Annotated[
        bool, typer.Option("--full", help="Show all slots of all definitions, including those that fit.")
    ] = False,
    confluent: ConfluentOption = False,
    fail_on: FailOnOption = None,
    as_json: JsonLinesOption = False,
) -> int:
    """Show slot by slot which definitions fit a message or almost fit, and what would make it fit.

    Exit codes: 0 done, 1 a message (of --line, if set) meets --fail-on, 2 cannot run.
    """
    check_standard_input(message=message, catalog=catalog)
    loaded = load_catalog(catalog, confluent_prefix=confluent)
    count, has_more, fails = 0, False, False
    for place, outcome in outcomes_of(message, loaded, endpoint):
        if line not in (None, place.line):
            continue
        fails = fails or (fail_on is not None and fail_on.is_met_by(outcome))
        if failed and outcome.matched:
            continue
        if count == limit:
            has_more = True
            if fails or fail_on is None:
                break
            continue
        explanation = loaded.explainer.explain_outcome(outcome, endpoint)
        if as_json:
            print_json(place.to_dict() | explanation.to_dict())
        else:
            print("\n" * bool(count) + "\n".join(map(_painted, lines_of(str(place), explanation, full=full))))
        count += 1
    _print_note(count, line, has_more=has_more)
    return int(fails)


def _painted(line: str) -> str:
    """Return a line with its verdict or its carets in colour."""
    if CARETS.fullmatch(line):
        return styled(line, RED)
    if verdict := VERDICT.match(line):
        return verdict[1] + styled(verdict[2], STYLE_OF[verdict[2]]) + line[verdict.end() :]
    return line


def _print_note(count: int, line: int | None, *, has_more: bool) -> None:
    if not count and line is not None:
        raise typer.BadParameter(f"no such message in line {line}", param_hint="--line")
    if not count:
        print_note("no messages")
    elif has_more:
        print_note(f"there are more messages; add --limit {count * 10}, or --line N for one of them")


def lines_of(place: str, explanation: Explanation, *, full: bool) -> Iterator[str]:
    """Yield the lines of an explanation. Control characters of the message are escaped."""
    outcome = explanation.outcome
    codes = "" if explanation.comparisons or not outcome.problems else f" [{outcome.problems[0].code}]"
    yield printable(f"{place}: {outcome.outcome}: {explanation.reason}{codes}")
    for number, comparison in enumerate(explanation.comparisons):
        yield ""
        yield from _comparison(comparison, full=full or number == 0)
    if not explanation.comparisons:
        yield from (printable(f"  {problem.message} [{problem.code}]") for problem in outcome.problems[1:])
    notes = [f"{problem.message} [{problem.code}]" for problem in outcome.problems if outcome.matched]
    if explanation.advice or notes:
        yield ""
        yield from (printable(f"  {text}") for text in (*explanation.advice, *notes))


def _comparison(comparison: Comparison, *, full: bool) -> Iterator[str]:
    wrong = len(comparison.wrong) + (len(comparison.payload.faults) if comparison.payload else 0)
    problems = f", {counted(wrong, 'problem')}" if wrong else ""
    yield printable(f"  {comparison.definition}: {ROLES[comparison.role]}{problems}")
    reports = comparison.slots if full else comparison.wrong
    width = max((len(report.slot) for report in reports), default=0)
    width = max(width, len("payload"))
    for report in reports:
        yield from _slot(report, width)
    if comparison.payload is not None and (full or not comparison.payload.fits):
        yield from _payload(comparison.payload, width)
    hidden = len(comparison.slots) - len(reports)
    if hidden:
        yield f"    and {counted(hidden, 'more slot')} (--full shows all)"


def _slot(report: SlotReport, width: int) -> Iterator[str]:
    head, blank = f"    {VERDICTS[report.verdict]:<6}{report.slot:<{width}}  ", " " * (width + 12)
    texts = list(_texts(report))
    yield printable(head + texts[0]).rstrip()
    yield from (printable(blank + text).rstrip() for text in texts[1:])
    if report.problem is not None and report.problem.code == "placeholder-conflict":
        yield printable(f"{blank}{report.problem.message}")
    if report.remedy:
        yield printable(f"{blank}{'fix' if report.verdict == 'wrong' else 'note'}: {report.remedy}")


def _texts(report: SlotReport) -> Iterator[str]:
    """Yield the value of the definition, then that of the message if it differs."""
    expected, actual = _expected(report.expected), _value(report.actual)
    if report.verdict == "wrong" and report.expected is None:
        yield report.problem.message if report.problem else ""
        return
    if report.verdict == "wrong" and report.actual == "":
        yield expected
        yield "(empty)"
        return
    if len(report.parts) > 1 or (report.parts and report.actual != report.expected):
        yield from aligned(report.parts, report.separator)
        return
    if report.verdict in ("open", "ignored"):
        yield f"{expected}{': absent' if report.actual is None else f': {actual}'}, " + (
            "not required" if report.verdict == "open" else "not compared"
        )
        return
    same = report.verdict == "fits" and (report.expected == report.actual or isinstance(report.expected, dict))
    yield f"{actual}" if same else expected
    if not same:
        yield "(absent)" if report.actual is None else actual


def aligned(parts: Sequence[AlignedSegment], separator: str) -> Iterator[str]:
    """Yield a template, a value below it, and carets below the segments that do not fit."""
    rows = [(_cell(part.template), _cell(part.value), "" if part.fits else _carets(part)) for part in parts]
    widths = [max(map(cell_len, cells)) for cells in rows]
    columns = [
        [text + " " * (width - cell_len(text)) for text in cells] for cells, width in zip(rows, widths, strict=True)
    ]
    templates, values, marks = zip(*columns, strict=True)
    yield _joined(templates, [part.extra != "value" for part in parts], separator)
    yield _joined(values, [part.extra != "template" for part in parts], separator)
    if carets := _joined(marks, [False] * len(parts), separator):
        yield carets


def _joined(cells: Sequence[str], present: Sequence[bool], separator: str) -> str:
    """Join cells, with a separator before each segment that is present except the first one."""
    joints = [separator if is_present and any(present[:n]) else " " for n, is_present in enumerate(present)]
    return "".join(joint + cell for joint, cell in zip(["", *joints[1:]], cells, strict=True)).rstrip()


def _cell(text: str) -> str:
    return printable(_shortened(text))


def _carets(part: AlignedSegment) -> str:
    """Return carets below the characters that differ from the literal, or below the whole segment."""
    from wirebook.definitions.explain.similar_names import common_prefix_length  # noqa: PLC0415 (a quarter of a second)

    one, other = _cell(part.template), _cell(part.value)
    if not one or not other or "{" in one:
        return "^" * max(cell_len(one), cell_len(other), 1)
    start = common_prefix_length(one, other)
    rest = common_prefix_length(one[start:][::-1], other[start:][::-1])
    differing = max(cell_len(text[start : len(text) - rest]) for text in (one, other))
    return " " * cell_len(other[:start]) + "^" * max(differing, 1)


def _payload(payload: PayloadReport, width: int) -> Iterator[str]:
    word = "fits" if payload.fits else "WRONG"
    yield printable(
        f"    {word:<6}{'payload':<{width}}  {payload.format}" + ("" if payload.fits else f": {payload.outcome}")
    )
    blank = " " * (width + 12)
    for fault in payload.faults:
        yield printable(f"{blank}{fault.path or 'whole payload'}: {_shortened(fault.message)} [{fault.code}]")
        if fault.remedy:
            yield printable(f"{blank}  fix: {fault.remedy}")


def _expected(value: Any) -> str:
    if isinstance(value, dict) and value.keys() == {"type"}:
        return f"any {value['type']}" if value["type"] != "any" else "anything"
    return _value(value)


def _value(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return _shortened(text)


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_VALUE else text[: MAX_VALUE - 1] + "…"
