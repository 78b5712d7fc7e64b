"""The inputs of commands: catalogues, captured messages, payloads and contexts."""

from __future__ import annotations

import hashlib
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from wirebook.cli.options import STANDARD_INPUT
from wirebook.cli.output import print_note, print_problems
from wirebook.core.counting import counted
from wirebook.problems import Problem, Severity, WirebookError

if TYPE_CHECKING:
    from wirebook.catalog import Catalog
    from wirebook.catalog.load import Document
    from wirebook.definitions.match.outcome import Outcome
    from wirebook.landing.runs.settings import Catalogue
    from wirebook.landing.stores.locations import Location

BLOCK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class MessageLocation:
    """The file and line of a message, and its index in a batch, as printed in tables and in `--json`."""

    file: str
    line: int
    index: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" + (f"[{self.index}]" if self.index else "")

    def to_dict(self) -> dict[str, Any]:
        return {"file": self.file, "line": self.line, "index": self.index}


def check_standard_input(**sources: str | Sequence[str] | None) -> None:
    """Check that at most one source is standard input. `sources` maps options to their values.

    Raises: WirebookError (``bad-setting``)
    """
    options = []
    for option, values in sources.items():
        name = f"--{option}" if option in ("catalog", "data", "context") else option.upper()
        options += [name] * ([values] if isinstance(values, str) else list(values or ())).count(STANDARD_INPUT)
    if len(options) > 1:
        message = f"standard input can be read only once; '-' is the value of {' and of '.join(options)}"
        raise WirebookError(Problem("bad-setting", message, hint="write one of them to a file"))


def documents_of(sources: Sequence[str]) -> list[str | Document]:
    """Return the sources for `load_registry`, with the content of standard input in place of ``-``."""
    from wirebook.catalog.load import Document  # noqa: PLC0415

    return [Document(source, sys.stdin.buffer.read()) if source == STANDARD_INPUT else source for source in sources]


def load_catalog(sources: list[str], **options: Any) -> Catalog:
    """Load a catalogue with these `MatchOptions`, and print which sources cannot be read. Raises: as `Catalog.load`"""
    from wirebook.catalog import Catalog  # noqa: PLC0415 (half a second)
    from wirebook.definitions.match.options import MatchOptions  # noqa: PLC0415

    loaded = Catalog.load(*documents_of(sources), options=MatchOptions(**options))
    print_problems(loaded.registry.unread)
    return loaded


def load_catalog_to_land(sources: list[str], *, confluent: bool) -> Catalog:
    """Load a catalogue, and print how many errors it has: landed tables are harder to correct than printed lines."""
    loaded = load_catalog(sources, confluent_prefix=confluent)
    _note_errors(sum(problem.severity is Severity.ERROR for problem in loaded.registry.problems))
    return loaded


def load_catalogue_for_run(sources: list[str], *, confluent: bool, endpoint: str | None) -> Catalogue:
    """Load what a run needs of a catalogue, and print how many errors it has.

    A large catalogue is compiled once; later runs read the compiled form from a cache.
    """
    from wirebook.definitions.match.options import MatchOptions  # noqa: PLC0415 (half a second for both)
    from wirebook.landing.job import load_catalogue  # noqa: PLC0415

    catalogue = load_catalogue(documents_of(sources), MatchOptions(confluent_prefix=confluent), endpoint)
    print_problems(catalogue.unread)
    _note_errors(catalogue.errors)
    return catalogue


def _note_errors(errors: int) -> None:
    if errors:
        print_note(f"the catalogue has {counted(errors, 'error')}; run `wirebook lint` to list them")


def outcomes_of(capture: str, catalog: Catalog, endpoint: str | None) -> Iterator[tuple[MessageLocation, Outcome]]:
    """Yield the location and the outcome of every message of a capture. Raises: WirebookError, as `outcomes_in`"""
    from wirebook.landing.runs.outcomes import outcomes_in  # noqa: PLC0415 (half a second)

    with capture_path(capture) as path:
        for origin, outcome in outcomes_in(path, catalog, endpoint):
            if outcome is not None:
                file = STANDARD_INPUT if capture == STANDARD_INPUT else origin.file
                yield MessageLocation(file, origin.line, outcome.received.index), outcome


@contextmanager
def capture_path(capture: str) -> Iterator[Location]:
    """Yield the location of a capture. Standard input is copied to a temporary file ``stdin-<hash>``."""
    from wirebook.landing.stores.locations import location_of  # noqa: PLC0415 (pyarrow)

    if capture != STANDARD_INPUT:
        yield location_of(capture)
        return
    with tempfile.TemporaryDirectory(prefix="wirebook-") as folder:
        path, digest = Path(folder, "stdin"), hashlib.sha256()
        with path.open("wb") as file:
            while block := sys.stdin.buffer.read(BLOCK):
                digest.update(block)
                file.write(block)
        yield path.rename(path.with_name(f"stdin-{digest.hexdigest()[:16]}"))


def read_context(source: str | None) -> dict[str, Any]:
    """Return the values of placeholders in a JSON file. Raises: WirebookError (``unreadable-file`` ...)"""
    from wirebook.text.json_documents import read_json  # noqa: PLC0415

    if source is None:
        return {}
    document = read_json(read_bytes(source), source)
    if not isinstance(document.value, dict):
        message = f"a context must be a JSON object of placeholders; got {type(document.value).__name__}"
        raise WirebookError(*document.problems, Problem("wrong-shape", message, file=source, line=1, column=1))
    return document.value


def read_bytes(source: str) -> bytes:
    """Return the content of a file or of standard input. Raises: WirebookError (``unreadable-file``)"""
    if source == STANDARD_INPUT:
        return sys.stdin.buffer.read()
    try:
        return Path(source).read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a path with NUL
        reason = getattr(error, "strerror", None) or error
        raise WirebookError(Problem("unreadable-file", f"{source}: {reason}", file=source)) from error
