"""The commands `lint`, which reports problems of catalogue documents, and `upgrade`, which rewrites them."""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Final

import typer

from wirebook.catalog.load import load_registry
from wirebook.catalog.upgrade import render_document
from wirebook.catalog.upgrade import upgrade as upgrade_registry
from wirebook.cli.exit_codes import FINDINGS, OK
from wirebook.cli.output import STYLES, print_note, printable, styled, suggestion
from wirebook.cli.sarif import sarif_log
from wirebook.cli.sources import check_standard_input, documents_of
from wirebook.core.counting import counted
from wirebook.definitions.normalize.documents import SPECVERSION
from wirebook.problems import Problem, Severity, WirebookError


class Format(StrEnum):
    """Output formats of `lint`."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"


class Threshold(StrEnum):
    """Severities that can make `lint` fail."""

    ERROR = "error"
    WARNING = "warning"


FAILING: Final = {Threshold.ERROR: (Severity.ERROR,), Threshold.WARNING: (Severity.ERROR, Severity.WARNING)}
NOUNS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def lint(
    sources: Annotated[
        list[str],
        typer.Argument(metavar="FILE|FOLDER|URL...", help="Documents to check as one catalogue; - for standard input."),
    ],
    format: Annotated[Format, typer.Option(help="Output format.")] = Format.TEXT,
    fail_on: Annotated[Threshold, typer.Option(help="Lowest severity that makes the command fail.")] = Threshold.ERROR,
) -> int:
    """Check catalogue documents against the xRegistry and CloudEvents specifications.

    Automatic corrections of older forms are reported as notes. docs/reference/codes explains each problem.

    Exit codes: 0 no problem at or above --fail-on, 1 at least one, 2 no document can be read.
    """
    from wirebook.definitions.lint.registry import lint as lint_registry  # noqa: PLC0415 (half a second)

    check_standard_input(source=sources)
    try:
        registry = load_registry(*documents_of(sources))
    except WirebookError as error:
        if format is not Format.TEXT:
            _print_findings(error.problems, format)
        raise
    problems = lint_registry(registry)
    _print_findings(problems, format)
    if format is Format.TEXT:
        print_note(_summary(problems, len(registry.sources)))
    return FINDINGS if any(problem.severity in FAILING[fail_on] for problem in problems) else OK


def _print_findings(problems: Sequence[Problem], format_: Format) -> None:
    if format_ is Format.JSON:
        print(json.dumps([problem.to_dict() for problem in problems], ensure_ascii=False))
    elif format_ is Format.SARIF:
        print(
            json.dumps(sarif_log(problems, version("wirebook")))
        )  # escaped to ASCII, which is valid UTF-8 (SARIF requires it) on every terminal
    else:
        for problem in problems:
            mark = f": {problem.severity} {problem.code}: "
            place, _, rest = render_finding(problem).partition(mark)
            print(f"{place}: {styled(problem.severity, STYLES.get(problem.severity, ''))} {problem.code}: {rest}")


def render_finding(problem: Problem) -> str:
    """Return ``FILE:LINE:COLUMN: SEVERITY CODE: MESSAGE (XID POINTER)`` on one line."""
    text = f"{problem.location or '-'}: {problem.severity} {problem.code}: {problem.message}"
    return printable(f"{text} ({problem.entity})" if problem.entity else text)


def _summary(problems: Sequence[Problem], documents: int) -> str:
    counts = Counter(problem.severity for problem in problems)
    totals = ", ".join(counted(counts[severity], noun) for severity, noun in NOUNS.items())
    return f"{totals} in {counted(documents, 'document')}"


def upgrade(
    source: Annotated[
        str, typer.Argument(metavar="DOC", help="The document: a file, a folder, a URL, or - for standard input.")
    ],
    to: Annotated[str, typer.Option(help="Version of the specification to write.")] = SPECVERSION,
    output: Annotated[Path | None, typer.Option(help="File to write. Default: standard output.")] = None,
) -> int:
    """Write a catalogue document as xRegistry 1.0-rc4. Every change is reported on standard error.

    Exit codes: 0 written, 2 the document cannot be read or written.
    """
    if to.casefold() != SPECVERSION:
        hint = suggestion(to, [SPECVERSION])
        message = f"'{to}' cannot be written; use {SPECVERSION}"
        raise WirebookError(Problem(code="unknown-specversion", message=message, expected=SPECVERSION, hint=hint))
    registry = load_registry(*documents_of([source]))
    if registry.unread:
        raise WirebookError(*registry.unread)
    document, problems = upgrade_registry(registry)
    write_whole(render_document(document), output)
    for problem in sorted(problems, key=lambda problem: (problem.file or "", problem.line or 0, problem.column or 0)):
        print_note(render_finding(problem))
    print_note(_summary(problems, 1))
    return OK


def write_whole(text: str, output: Path | None) -> None:
    """Write a text to a file atomically, or to standard output. An existing file keeps its mode.

    Raises: WirebookError (``unwritable-file``)
    """
    if output is None:
        print(text, end="")
        return
    try:
        target = output.resolve()  # replace the target of a link, not the link
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o644
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        with ExitStack() as on_failure:
            on_failure.callback(Path(name).unlink)
            with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
            Path(name).chmod(mode)
            Path(name).replace(target)
            on_failure.pop_all()
    except (OSError, RuntimeError) as error:  # RuntimeError: a link to itself
        message = f"'{output}' cannot be written: {getattr(error, 'strerror', None) or error}"
        raise WirebookError(Problem(code="unwritable-file", message=message, file=str(output))) from None
