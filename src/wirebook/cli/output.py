"""How the command line speaks: tables and JSON on standard output, problems and notes on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import IO, Any

from wirebook.problems import Problem


def print_json(value: Any) -> None:
    """One value on one line of standard output."""
    import orjson  # noqa: PLC0415

    try:
        text = orjson.dumps(value, default=str).decode()
    except TypeError:  # an integer beyond 64 bits, half a character
        text = json.dumps(value, separators=(",", ":"), default=str)
    sys.stdout.write(text + "\n")


def print_note(text: str) -> None:
    """Something worth knowing, on standard error; behind what was printed before it, where both go to one place."""
    sys.stdout.flush()
    print(text, file=sys.stderr, flush=True)


def print_problems(problems: Iterable[Problem], file: IO[str] | None = None) -> None:
    """One line per problem; on standard error unless another file is given."""
    for problem in problems:
        print(render_problem(problem), file=file or sys.stderr)


def render_problem(problem: Problem) -> str:
    """`PLACE: SEVERITY: MESSAGE [CODE]; hint`, one line whatever the texts hold, readable without colour."""
    where = ": ".join(filter(None, (problem.place, str(problem.severity))))
    hint = f"; {problem.hint}" if problem.hint else ""
    text = problem.message.removeprefix(f"{problem.slot}: ")  # `where` has the slot
    return printable(f"{where}: {text} [{problem.code}]{hint}")


def printable(text: str) -> str:
    """The text with what would move the cursor or break the line (also escape sequences) written as escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, title: str | None = None) -> None:
    """A table: drawn on a terminal, aligned text otherwise. Numbers stand at the right."""
    cells = [tuple("" if value is None else value for value in row) for row in rows]
    draw = _draw_rich if sys.stdout.isatty() else _draw_plain
    draw(columns, cells, title)


def nearest(name: str, choices: Iterable[str]) -> str | None:
    """The choice that a mistyped name most likely meant."""
    return next(iter(get_close_matches(name, list(choices), n=1)), None)


def suggestion(name: str, choices: Iterable[str]) -> str | None:
    """A hint for an unknown name, if one of the choices comes near."""
    near = nearest(name, choices)
    return near and f"did you mean '{near}'?"


def _draw_plain(columns: Sequence[str], rows: list[tuple[Any, ...]], title: str | None) -> None:
    lines = [tuple(columns), *(tuple(printable(str(value)) for value in row) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    right = _numeric(columns, rows)
    if title:
        print(title)
    for line in lines:
        aligned = (c.rjust(w) if r else c.ljust(w) for c, w, r in zip(line, widths, right, strict=True))
        print("  ".join(aligned).rstrip())


def _draw_rich(columns: Sequence[str], rows: list[tuple[Any, ...]], title: str | None) -> None:
    from rich import box  # noqa: PLC0415
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for column, right in zip(columns, _numeric(columns, rows), strict=True):
        table.add_column(Text(column), justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(f"{value:,}" if type(value) is int else str(value))) for value in row))
    Console().print(table)


def _numeric(columns: Sequence[str], rows: list[tuple[Any, ...]]) -> list[bool]:
    return [bool(rows) and all(isinstance(row[i], int | float) for row in rows) for i in range(len(columns))]
