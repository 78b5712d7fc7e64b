"""Output of the command line: tables and JSON on standard output, problems and notes on standard error."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from itertools import zip_longest
from shutil import get_terminal_size
from typing import IO, Any, Final

from rich.cells import cell_len

from wirebook.problems import Problem

BOLD, RED, GREEN, YELLOW = "1", "31", "32", "33"
"""Styles, by their numbers in ANSI escape sequences."""
GAP: Final = "  "
STYLES: Final = {
    "matched": GREEN,
    "unconstrained": RED,
    "unexpected": RED,
    "ambiguous": RED,
    "malformed": RED,
    "undecodable": RED,
    "invalid-payload": RED,
    "unsupported": RED,
    "oversized": RED,
    "error": RED,
    "warning": YELLOW,
}
"""The styles of outcomes and severities."""


def has_colours(stream: IO[str]) -> bool:
    """Return whether to print colours: by NO_COLOR, else FORCE_COLOR, else on terminals unless TERM is ``dumb``."""
    if os.environ.get("NO_COLOR"):
        return False
    if forced := os.environ.get("FORCE_COLOR"):
        return forced != "0"
    return os.environ.get("TERM") != "dumb" and stream.isatty()


def styled(text: str, style: str, stream: IO[str] | None = None) -> str:
    """Return the text with a style, if the stream (by default standard output) has colours."""
    if not style or not text or not has_colours(stream or sys.stdout):
        return text
    return f"\x1b[{style}m{text}\x1b[0m"


def print_json(value: Any) -> None:
    """Print a value on one line of standard output."""
    import orjson  # noqa: PLC0415

    try:
        text = orjson.dumps(value, default=str).decode()
    except TypeError:  # an integer beyond 64 bits, or a lone surrogate
        text = json.dumps(value, separators=(",", ":"), default=str)
    sys.stdout.write(text + "\n")


def print_note(text: str) -> None:
    """Print a note on standard error, after everything that was printed before it."""
    sys.stdout.flush()
    print(text, file=sys.stderr, flush=True)


def print_event(value: dict[str, Any]) -> None:
    """Print an object with the current time on one line of standard error, for programs that watch a command."""
    import orjson  # noqa: PLC0415

    sys.stdout.flush()
    time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    print(orjson.dumps({"time": time} | value).decode(), file=sys.stderr, flush=True)


def print_problems(problems: Iterable[Problem], file: IO[str] | None = None) -> None:
    """Print one line per problem, by default on standard error."""
    stream = file or sys.stderr
    for problem in problems:
        mark = f"{problem.severity}: "
        place, _, rest = render_problem(problem).partition(mark)
        print(f"{place}{styled(str(problem.severity), STYLES.get(problem.severity, ''), stream)}: {rest}", file=stream)


def render_problem(problem: Problem) -> str:
    """Return `PLACE: SEVERITY: MESSAGE DETAIL [CODE]; HINT` on one line."""
    where = ": ".join(filter(None, (problem.place, str(problem.severity))))
    hint = f"; {problem.hint}" if problem.hint else ""
    text = problem.message.removeprefix(f"{problem.slot}: ")  # `where` contains the slot
    text += f" {problem.detail}" if problem.detail else ""
    return printable(f"{where}: {text} [{problem.code}]{hint}")


def printable(text: str) -> str:
    """Return the text with control characters, which could move the cursor, as escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, title: str | None = None) -> None:
    """Print a table as aligned text, with numbers aligned to the right. On a terminal, fit it to the width.

    Text is wrapped between words. If that does not suffice, each row becomes a block with one line per column, so that
    an XID or a file name is never broken and can be copied.
    """
    is_terminal = sys.stdout.isatty()
    cells = [tuple(_cell(value, grouped=is_terminal) for value in row) for row in rows]
    is_numeric = [bool(column) and all(is_number for _, is_number in column) for column in zip(*cells, strict=True)]
    right = is_numeric or [False] * len(columns)
    texts = [tuple(text for text, _ in row) for row in cells]
    if title:
        print(styled(title, BOLD))
    natural = [max(map(cell_len, column)) for column in zip(columns, *texts, strict=True)]
    widths = _fitting(columns, texts, natural) if is_terminal else natural
    if widths is None:
        _print_blocks(columns, texts)
        return
    formats = list(zip(widths, right, strict=True))
    print(_line([_pad(name, *format_) for name, format_ in zip(columns, formats, strict=True)], BOLD))
    for row in texts:
        folded = [_fold(text, width) for text, width in zip(row, widths, strict=True)]
        styles = [STYLES.get(text, "") for text in row]
        for parts in zip_longest(*folded, fillvalue=""):
            padded = (_pad(part, *format_) for part, format_ in zip(parts, formats, strict=True))
            print(_line([styled(part, style) for part, style in zip(padded, styles, strict=True)]))


def _cell(value: Any, *, grouped: bool) -> tuple[str, bool]:
    """Return the text of a value, and whether it is a number."""
    is_number = isinstance(value, int | float)
    text = f"{value:,}" if grouped and type(value) is int else str("" if value is None else value)
    return printable(text), is_number


def _fitting(columns: Sequence[str], rows: list[tuple[str, ...]], natural: list[int]) -> list[int] | None:
    """Return column widths that fit the terminal together, or None if this would break words."""
    room = get_terminal_size().columns - len(GAP) * (len(columns) - 1)
    if sum(natural) <= room:
        return natural
    least = [
        max(cell_len(word) for text in column for word in text.split() or [""])
        for column in zip(columns, *rows, strict=True)
    ]
    spare = room - sum(least)
    if spare < 0:
        return None
    widths = list(least)
    for index in sorted(range(len(widths)), key=lambda index: natural[index] - least[index]):
        columns_left = sum(width < full for width, full in zip(widths, natural, strict=True)) or 1
        more = min(natural[index] - least[index], max(spare // columns_left, 0))
        widths[index] += more
        spare -= more
    return widths


def _print_blocks(columns: Sequence[str], rows: list[tuple[str, ...]]) -> None:
    """Print a line for each column of a row, and an empty line between rows."""
    head = max(map(cell_len, columns))
    room = max(get_terminal_size().columns - head - len(GAP), 1)
    for number, row in enumerate(rows):
        if number:
            print()
        for name, text in zip(columns, row, strict=True):
            for place, line in enumerate(_fold(text, room) if text else ()):
                label = styled(_pad(name if place == 0 else "", head, False), BOLD)
                print(_line([label, styled(line, STYLES.get(text, ""))]))


def _fold(text: str, width: int) -> list[str]:
    """Wrap a text between words."""
    if cell_len(text) <= width:
        return [text]
    lines = [""]
    for word in text.split():
        if lines[-1] and cell_len(lines[-1]) + 1 + cell_len(word) > width:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return lines


def _pad(text: str, width: int, right: bool) -> str:
    blanks = " " * max(width - cell_len(text), 0)
    return blanks + text if right else text + blanks


def _line(parts: Sequence[str], style: str = "") -> str:
    return styled(GAP.join(parts).rstrip(), style)


def nearest(name: str, choices: Iterable[str]) -> str | None:
    """Return the choice that is closest to a mistyped name."""
    return next(iter(get_close_matches(name, list(choices), n=1)), None)


def suggestion(name: str, choices: Iterable[str]) -> str | None:
    """Return a hint for an unknown name if one of the choices is similar."""
    near = nearest(name, choices)
    return near and f"did you mean '{near}'?"
