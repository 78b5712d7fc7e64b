"""`wirebook match`: which definition each captured message is, and why not.

Spec: docs/outcomes.md#match-as-json.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wirebook.cli.output import print_json, print_note, print_problems, print_table

if TYPE_CHECKING:
    from wirebook.message.selection import Outcome
    from wirebook.spark.rows import Origin

STANDARD_INPUT = "-"


def match(
    capture: Annotated[str, typer.Argument(help="A capture file, a folder of them, or - for standard input.")],
    catalog: Annotated[
        list[str], typer.Option("--catalog", "-c", help="A catalogue: file, folder or URL. Repeatable.")
    ],
    endpoint: Annotated[str | None, typer.Option(help="XID of the endpoint that all messages came through.")] = None,
    confluent: Annotated[
        bool, typer.Option("--confluent", help="Take Confluent's prefix (a zero byte, an id) off Kafka values.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object for each message.")] = False,
) -> None:
    """Say which definition each captured message is, and why not."""
    from wirebook.catalog import Catalog  # noqa: PLC0415 (half a second, both of these)
    from wirebook.message.matcher import MatchOptions  # noqa: PLC0415
    from wirebook.spark.outcomes import outcomes_in  # noqa: PLC0415

    loaded = Catalog.load(*catalog, options=MatchOptions(confluent_prefix=confluent))
    print_problems(loaded.registry.unread)
    counts: Counter[str] = Counter()
    with source_path(capture) as path:
        rows: list[tuple[Any, ...]] = []
        for origin, outcome in outcomes_in(path, loaded, endpoint):
            if outcome is None:
                continue
            counts[outcome.outcome] += 1
            place = STANDARD_INPUT if capture == STANDARD_INPUT else origin.file
            if as_json:
                print_json(to_dict(place, origin, outcome))
            else:
                rows.append(_row(place, origin, outcome))
    if not as_json:
        print_table(("message", "outcome", "definition", "bindings, or what is wrong"), rows)
    print_note(", ".join(f"{count:,} {name}" for name, count in counts.most_common()) or "no messages")


def to_dict(file: str, origin: Origin, outcome: Outcome) -> dict[str, Any]:
    """One line of `match --json`."""
    return {"file": file, "line": origin.line, "index": outcome.received.index, **outcome.to_dict()}


def _row(file: str, origin: Origin, outcome: Outcome) -> tuple[Any, ...]:
    index = f"[{outcome.received.index}]" if outcome.received.index else ""
    return f"{file}:{origin.line}{index}", outcome.outcome, outcome.definition or _nearest(outcome), _said(outcome)


def _nearest(outcome: Outcome) -> str:
    return f"(nearest: {outcome.near[0].definition})" if outcome.near else ""


def _said(outcome: Outcome) -> str:
    if outcome.matched:
        return ", ".join(f"{name}={value}" for name, value in outcome.bindings.items())
    return "; ".join(problem.message or problem.code for problem in outcome.problems)


@contextmanager
def source_path(capture: str) -> Iterator[Path]:
    """The source as a path; standard input by way of a temporary file."""
    if capture != STANDARD_INPUT:
        yield Path(capture)
        return
    with tempfile.NamedTemporaryFile(prefix="capture-") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
        file.flush()
        yield Path(file.name)
