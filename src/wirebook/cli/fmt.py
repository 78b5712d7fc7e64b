"""``wirebook fmt``: catalogue documents in canonical order."""

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
from wirebook.cli.documents import CLEAN, FINDINGS, render_finding, write_whole
from wirebook.cli.options import STANDARD_INPUT
from wirebook.cli.output import print_note, printable
from wirebook.cli.sources import check_standard_input
from wirebook.core.counting import counted
from wirebook.definitions.normalize.foreign_documents import refusal_of
from wirebook.problems import Problem, WirebookError
from wirebook.text.source import Source


class Text(NamedTuple):
    """A document as it is, and in canonical order."""

    name: str
    before: bytes
    after: bytes
    problems: tuple[Problem, ...]


def fmt(
    sources: Annotated[
        list[str],
        typer.Argument(metavar="FILE|FOLDER...", help="The documents to put in order; - for standard input."),
    ],
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; exit 1 and name what is not in order.")
    ] = False,
) -> int:
    """Put catalogue documents in canonical order. Their meaning and the comments of YAML stay the same.

    JSON is rewritten with two spaces for each level. In YAML only whole lines move. A member that occurs twice with
    equal values is reported and written once. A document from standard input is written to standard output.

    Exit codes: 0 all documents are in order (or were put in order), 1 with --check: some are not, 2 a document cannot
    be read.
    """
    check_standard_input(file=sources)
    texts = [text for source in sources for text in _texts(source)]
    for problem in (problem for text in texts for problem in text.problems):
        print_note(render_finding(problem))
    changed = [text for text in texts if text.before != text.after]
    report = print_note if STANDARD_INPUT in sources else print  # standard output is for the document
    for text in changed:
        if not check and text.name != STANDARD_INPUT:
            write_whole(text.after.decode(), Path(text.name))
        report(printable(f"{'not in order' if check else 'put in order'}: {text.name}"))
    if not check:
        print(*(text.after.decode() for text in texts if text.name == STANDARD_INPUT), sep="", end="")
    print_note(f"{len(changed)} of {counted(len(texts), 'document')} {'not' if check else 'put'} in order")
    return FINDINGS if check and changed else CLEAN


def _texts(source: str) -> Iterator[Text]:
    """Each document of a source; of a folder those that are registry documents."""
    if source == STANDARD_INPUT:
        document = Document(source, sys.stdin.buffer.read())
        yield _text(source, document.data, read_document(document))
        return
    path = Path(source)
    if not is_folder(path):
        read = read_file(path)
        yield _text(str(path), path.read_bytes(), read)
        return
    for file in documents_in(path):
        read = read_file(file)
        if meaning(read.value) is not None:
            yield _text(str(file), file.read_bytes(), read)


def _text(name: str, data: bytes, source: Source) -> Text:
    """Raises: not-a-registry; not-orderable when the document would not mean the same."""
    before = meaning(source.value)
    if before is None:
        message = refusal_of(source.value)
        raise WirebookError(Problem(code="not-a-registry", message=message, file=name, line=1, column=1))
    kind = document_format(name, data)
    if kind == "yaml":
        text = _yaml(name, data, in_canonical_order(source.value))
    else:
        text = render(in_canonical_order(parse_as_written(data))).encode()
    _check_meaning(name, text, kind, before)
    return Text(name, data, text, source.problems)


def _yaml(name: str, data: bytes, wanted: object) -> bytes:
    try:
        return reordered(data.decode("utf-8-sig"), wanted).encode()
    except yaml.YAMLError as error:
        raise WirebookError(_not_orderable(name, str(error).split("\n")[0])) from None


def _check_meaning(name: str, text: bytes, kind: str, before: str) -> None:
    try:
        after = meaning(read_text(text, name, kind).value)
    except WirebookError as error:
        raise WirebookError(_not_orderable(name, error.problems[0].message)) from None
    if after != before:
        raise WirebookError(_not_orderable(name, "the order of some members has a meaning here"))


def _not_orderable(name: str, reason: str) -> Problem:
    message = f"'{name}' cannot be put in order: {reason}; it is unchanged"
    return Problem(code="not-orderable", message=message, file=name)
