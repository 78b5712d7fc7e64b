"""What commands read: catalogues, captured messages, data."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wirebook.cli.options import STANDARD_INPUT
from wirebook.cli.output import print_note, print_problems
from wirebook.problems import Problem, Severity, WirebookError

if TYPE_CHECKING:
    from wirebook.catalog import Catalog
    from wirebook.message.selection import Outcome


@dataclass(frozen=True, slots=True)
class Place:
    """Where a message is: the identity that tables and `--json` give it."""

    file: str
    line: int
    index: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" + (f"[{self.index}]" if self.index else "")

    def to_dict(self) -> dict[str, Any]:
        return {"file": self.file, "line": self.line, "index": self.index}


def load_catalog(sources: list[str], **options: Any) -> Catalog:
    """The catalogue, with `MatchOptions`; what could not be read of it is told. Raises: as `Catalog.load`."""
    from wirebook.catalog import Catalog  # noqa: PLC0415 (half a second)
    from wirebook.message.matcher import MatchOptions  # noqa: PLC0415

    loaded = Catalog.load(*sources, options=MatchOptions(**options))
    print_problems(loaded.registry.unread)
    return loaded


def load_catalog_to_land(sources: list[str], *, confluent: bool) -> Catalog:
    """The catalogue, and word of its errors: a table is harder to take back than a line on a screen."""
    loaded = load_catalog(sources, confluent_prefix=confluent)
    errors = sum(problem.severity is Severity.ERROR for problem in loaded.diagnostics)
    if errors:
        counted = f"{errors:,} error{'' if errors == 1 else 's'}"
        print_note(f"the catalogue has {counted}: 'wirebook lint' names them")
    return loaded


def outcomes_of(capture: str, catalog: Catalog, endpoint: str | None) -> Iterator[tuple[Place, Outcome]]:
    """Every message of a capture, in order, with what it is. Raises: WirebookError, as `spark.outcomes.outcomes_in`."""
    from wirebook.spark.outcomes import outcomes_in  # noqa: PLC0415 (half a second)

    with _path_of(capture) as path:
        for origin, outcome in outcomes_in(path, catalog, endpoint):
            if outcome is not None:
                file = STANDARD_INPUT if capture == STANDARD_INPUT else origin.file
                yield Place(file, origin.line, outcome.received.index), outcome


@contextmanager
def _path_of(capture: str) -> Iterator[Path]:
    """The source as a path; standard input by way of a temporary file."""
    if capture != STANDARD_INPUT:
        yield Path(capture)
        return
    with tempfile.NamedTemporaryFile(prefix="capture-") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
        file.flush()
        yield Path(file.name)


def read_bytes(source: str) -> bytes:
    """A file, or standard input. Raises: WirebookError (``unreadable-file``)."""
    if source == STANDARD_INPUT:
        return sys.stdin.buffer.read()
    try:
        return Path(source).read_bytes()
    except (OSError, ValueError) as error:  # a path with NUL is a ValueError
        reason = getattr(error, "strerror", None) or error
        raise WirebookError(Problem("unreadable-file", f"{source}: {reason}", file=source)) from error
