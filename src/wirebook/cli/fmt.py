"""``wirebook fmt``: catalogue documents in canonical order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
import yaml

from wirebook.catalog.formatting import in_canonical_order, meaning, parse_as_written, render
from wirebook.catalog.load import SUFFIXES, documents_in, is_folder, read_file, read_text
from wirebook.catalog.yamlorder import reordered
from wirebook.cli.documents import CLEAN, FINDINGS, write_whole
from wirebook.cli.output import print_note, printable
from wirebook.core.source import Source
from wirebook.problems import Problem, WirebookError


def fmt(
    sources: Annotated[list[Path], typer.Argument(metavar="FILE|FOLDER...", help="The documents to put in order.")],
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; exit 1 and name what is not in order.")
    ] = False,
) -> int:
    """Put catalogue documents in canonical order. What they mean stays the same, in YAML also each comment.

    JSON is written anew, two blanks for each level. Of YAML whole lines move; nothing else changes in them.

    Exit codes: 0 all are in order (or were put so), 1 with --check: some are not, 2 a document cannot be read.
    """
    texts = [document for source in sources for document in _documents(source)]
    changed = [(path, text) for path, text in texts if text != path.read_bytes()]
    for path, text in changed:
        if not check:
            write_whole(text.decode(), path)
        print(printable(f"{'not in order' if check else 'put in order'}: {path}"))
    print_note(f"{len(changed)} of {len(texts)} documents {'not' if check else 'put'} in order")
    return FINDINGS if check and changed else CLEAN


def _documents(path: Path) -> Iterator[tuple[Path, bytes]]:
    """Each document with its text in order; of a folder those that are registry documents."""
    if not is_folder(path):
        yield path, _in_order(path, read_file(path))
        return
    for file in documents_in(path):
        source = read_file(file)
        if meaning(source.value) is not None:
            yield file, _in_order(file, source)


def _in_order(path: Path, source: Source) -> bytes:
    """Raises: not-a-registry; not-orderable when the document would not mean the same."""
    before = meaning(source.value)
    if before is None:
        message = "there are no message groups, endpoints or schema groups in it"
        raise WirebookError(Problem(code="not-a-registry", message=message, file=str(path), line=1, column=1))
    if _is_yaml(path):
        text = _yaml(path, in_canonical_order(source.value))
    else:
        text = render(in_canonical_order(parse_as_written(path.read_bytes()))).encode()
    _check_meaning(path, text, before)
    return text


def _is_yaml(path: Path) -> bool:
    kind = SUFFIXES.get(path.suffix.lower())
    return kind == "yaml" or (kind is None and path.read_bytes().lstrip(b"\xef\xbb\xbf \t\r\n")[:1] not in (b"{", b"["))


def _yaml(path: Path, wanted: object) -> bytes:
    try:
        return reordered(path.read_bytes().decode("utf-8-sig"), wanted).encode()
    except yaml.YAMLError as error:
        raise WirebookError(_not_orderable(path, str(error).split("\n")[0])) from None


def _check_meaning(path: Path, text: bytes, before: str) -> None:
    try:
        after = meaning(read_text(text, str(path), "yaml" if _is_yaml(path) else "json").value)
    except WirebookError as error:
        raise WirebookError(_not_orderable(path, error.problems[0].message)) from None
    if after != before:
        raise WirebookError(_not_orderable(path, "the order of some members has a meaning here"))


def _not_orderable(path: Path, reason: str) -> Problem:
    message = f"'{path}' cannot be put in order: {reason}; it is unchanged"
    return Problem(code="not-orderable", message=message, file=str(path))
