"""`wirebook fmt`: write catalogue documents in canonical order."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
import yaml

from wirebook.catalog.formatting import in_canonical_order, meaning, parse_as_written, render
from wirebook.catalog.load import (
    Document,
    document_format,
    documents_in,
    is_folder,
    read_document,
    read_file,
    read_text,
)
from wirebook.catalog.yamlorder import reordered
from wirebook.cli.documents import render_finding, write_whole
from wirebook.cli.exit_codes import FINDINGS, OK
from wirebook.cli.options import STANDARD_INPUT
from wirebook.cli.output import print_note, printable
from wirebook.cli.sources import check_standard_input
from wirebook.core.counting import counted
from wirebook.definitions.normalize.foreign_documents import refusal_of
from wirebook.problems import Problem, WirebookError
from wirebook.text.source import Source


class FormattedDocument(NamedTuple):
    """A document before and after formatting."""

    name: str
    before: bytes
    after: bytes
    problems: tuple[Problem, ...]


def fmt(
    sources: Annotated[
        list[str],
        typer.Argument(metavar="FILE|FOLDER...", help="Documents to format; - for standard input."),
    ],
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; list documents that are not in order and exit with 1.")
    ] = False,
) -> int:
    """Write catalogue documents in canonical order, without changing their meaning or YAML comments.

    JSON is indented by two spaces. In YAML only whole lines move. A member that occurs twice with equal values is
    reported and written once. A document from standard input is written to standard output.

    Exit codes: 0 all documents are in order now, 1 with --check: some are not, 2 a document cannot be read.
    """
    check_standard_input(file=sources)
    documents = [document for source in sources for document in _format_source(source)]
    for problem in (problem for document in documents for problem in document.problems):
        print_note(render_finding(problem))
    changed = [document for document in documents if document.before != document.after]
    report = print_note if STANDARD_INPUT in sources else print  # standard output carries the document
    for document in changed:
        if not check and document.name != STANDARD_INPUT:
            write_whole(document.after.decode(), Path(document.name))
        report(printable(f"{'not in order' if check else 'reordered'}: {document.name}"))
    if not check:
        print(*(document.after.decode() for document in documents if document.name == STANDARD_INPUT), sep="", end="")
    print_note(f"{len(changed)} of {counted(len(documents), 'document')} {'not in order' if check else 'reordered'}")
    return FINDINGS if check and changed else OK


def _format_source(source: str) -> Iterator[FormattedDocument]:
    """Format each document of a source. In a folder, skip files that are not catalogue documents."""
    if source == STANDARD_INPUT:
        document = Document(source, sys.stdin.buffer.read())
        yield _format(source, document.data, read_document(document))
        return
    path = Path(source)
    if not is_folder(path):
        read = read_file(path)
        yield _format(str(path), path.read_bytes(), read)
        return
    for file in documents_in(path):
        read = read_file(file)
        if meaning(read.value) is not None:
            yield _format(str(file), file.read_bytes(), read)


def _format(name: str, data: bytes, source: Source) -> FormattedDocument:
    """Raises: not-a-registry; not-orderable if the meaning of the document would change"""
    before = meaning(source.value)
    if before is None:
        message = refusal_of(source.value)
        raise WirebookError(Problem(code="not-a-registry", message=message, file=name, line=1, column=1))
    kind = document_format(name, data)
    if kind == "yaml":
        try:
            text = reordered(data.decode("utf-8-sig"), in_canonical_order(source.value)).encode()
        except yaml.YAMLError as error:
            raise WirebookError(_not_orderable(name, str(error).split("\n")[0])) from None
    else:
        text = render(in_canonical_order(parse_as_written(data))).encode()
    try:
        after = meaning(read_text(text, name, kind).value)
    except WirebookError as error:
        raise WirebookError(_not_orderable(name, error.problems[0].message)) from None
    if after != before:
        raise WirebookError(_not_orderable(name, "the order of some members changes its meaning"))
    return FormattedDocument(name, data, text, source.problems)


def _not_orderable(name: str, reason: str) -> Problem:
    message = f"'{name}' cannot be reordered: {reason}; the file is unchanged"
    return Problem(code="not-orderable", message=message, file=name)
