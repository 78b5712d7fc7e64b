"""The commands that read catalogue documents: `lint` says what is wrong with them, `upgrade` writes them anew."""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Final

import typer

from wirebook.catalog.load import load_registry
from wirebook.catalog.upgrade import render_document
from wirebook.catalog.upgrade import upgrade as upgrade_registry
from wirebook.cli.output import STYLES, print_note, printable, styled, suggestion
from wirebook.cli.sarif import sarif_log
from wirebook.cli.sources import check_standard_input, documents_of
from wirebook.core.counting import counted
from wirebook.definitions.normalize.documents import SPECVERSION
from wirebook.definitions.resolve.registry import LoadedRegistry
from wirebook.problems import Problem, Severity, WirebookError


class Format(StrEnum):
    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"


class Threshold(StrEnum):
    ERROR = "error"
    WARNING = "warning"


CLEAN, FINDINGS = 0, 1
COUNTING: Final = {Threshold.ERROR: (Severity.ERROR,), Threshold.WARNING: (Severity.ERROR, Severity.WARNING)}
NOUNS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def lint(
    sources: Annotated[
        list[str],
        typer.Argument(metavar="FILE|FOLDER|URL...", help="What to check, as one catalogue; - for standard input."),
    ],
    format: Annotated[Format, typer.Option(help="How the findings are written.")] = Format.TEXT,
    fail_on: Annotated[
        Threshold, typer.Option(help="The least grave finding that makes the exit code 1.")
    ] = Threshold.ERROR,
) -> int:
    """Check catalogue documents: what loading repairs, and every rule of the message and endpoint texts.

    Exit codes: 0 no finding at or above --fail-on, 1 there is one, 2 nothing could be read.
    """
    from wirebook.definitions.lint.registry import lint as lint_registry  # noqa: PLC0415 (half a second)

    check_standard_input(source=sources)
    registry = _load(sources, format)
    problems = lint_registry(registry)
    _print_findings(problems, format)
    if format is Format.TEXT:
        print_note(_summary(problems, len(registry.sources)))
    return FINDINGS if any(problem.severity in COUNTING[fail_on] for problem in problems) else CLEAN


def _load(sources: Sequence[str], format_: Format) -> LoadedRegistry:
    """The registry. Where nothing could be read, programs get that as findings, too."""
    try:
        return load_registry(*documents_of(sources))
    except WirebookError as error:
        if format_ is not Format.TEXT:
            _print_findings(error.problems, format_)
        raise


def _print_findings(problems: Sequence[Problem], format_: Format) -> None:
    if format_ is Format.JSON:
        print(json.dumps([problem.to_dict() for problem in problems], ensure_ascii=False))
    elif format_ is Format.SARIF:
        print(json.dumps(sarif_log(problems, version("wirebook"))))  # ASCII, so UTF-8 as it must be on any terminal
    else:
        for problem in problems:
            mark = f": {problem.severity} {problem.code}: "
            place, _, rest = render_finding(problem).partition(mark)
            print(f"{place}: {styled(problem.severity, STYLES.get(problem.severity, ''))} {problem.code}: {rest}")


def render_finding(problem: Problem) -> str:
    """``FILE:LINE:COLUMN: SEVERITY CODE: MESSAGE (XID POINTER)`` on one line; no part is repeated."""
    text = f"{problem.location or '-'}: {problem.severity} {problem.code}: {problem.message}"
    return printable(f"{text} ({problem.entity})" if problem.entity else text)


def _summary(problems: Sequence[Problem], documents: int) -> str:
    counts = Counter(problem.severity for problem in problems)
    found = ", ".join(counted(counts[severity], noun) for severity, noun in NOUNS.items())
    return f"{found} in {counted(documents, 'document')}"


def upgrade(
    source: Annotated[
        str, typer.Argument(metavar="DOC", help="The document: a file, a folder, a URL, or - for standard input.")
    ],
    to: Annotated[str, typer.Option(help="The version of the text to write.")] = SPECVERSION,
    output: Annotated[Path | None, typer.Option(help="Where to write it; standard output if not given.")] = None,
) -> int:
    """Write a catalogue document as xRegistry 1.0-rc4; renames, drops and guesses go to standard error."""
    if to.casefold() != SPECVERSION:
        hint = suggestion(to, [SPECVERSION])
        message = f"'{to}' cannot be written; {SPECVERSION} can"
        raise WirebookError(Problem(code="unknown-specversion", message=message, expected=SPECVERSION, hint=hint))
    registry = load_registry(*documents_of([source]))
    if registry.unread:
        raise WirebookError(*registry.unread)
    document, problems = upgrade_registry(registry)
    write_whole(render_document(document), output)
    for problem in sorted(problems, key=lambda each: (each.file or "", each.line or 0, each.column or 0)):
        print_note(render_finding(problem))
    print_note(_summary(problems, 1))
    return CLEAN


def write_whole(text: str, output: Path | None) -> None:
    """The whole text or nothing: a file that is there is replaced in one step, and keeps its mode.

    Raises: WirebookError (``unwritable-file``).
    """
    if output is None:
        print(text, end="")
        return
    try:
        target = output.resolve()  # a link stays one
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o644
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        Path(name).chmod(mode)
        Path(name).replace(target)
    except (OSError, RuntimeError) as error:  # a link to itself is a RuntimeError
        message = f"'{output}' cannot be written: {getattr(error, 'strerror', None) or error}"
        raise WirebookError(Problem(code="unwritable-file", message=message, file=str(output))) from None
