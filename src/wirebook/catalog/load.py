"""Loading: files, folders, addresses and values become one registry.

    load_registry("catalogue.json", "more/", "https://registry.example.com")

A document that parses is loaded, however many rules it breaks; one that does not is a diagnostic and the rest is
loaded. Only when there is nothing left at all does loading fail.

Spec: docs/catalogues.md#loading; docs/semantics.md D43, D47.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from wirebook.definitions.normalize.document_stack import DocumentStack
from wirebook.definitions.normalize.documents import normalise_document
from wirebook.definitions.normalize.foreign_documents import CAPTURE, document_kind, misspelt_collection, refusal_of
from wirebook.definitions.normalize.log import Log
from wirebook.definitions.normalize.partial_documents import as_registry
from wirebook.definitions.resolve.endpoints import resolve_endpoints
from wirebook.definitions.resolve.messages import resolve_messages
from wirebook.definitions.resolve.registry import DocumentOrigin, LoadedRegistry
from wirebook.problems import Problem, Severity, WirebookError
from wirebook.text.json import JsonError, parse_json
from wirebook.text.json_documents import read_json
from wirebook.text.pointers import escape
from wirebook.text.source import DEFAULT_LIMITS, DocumentLimits, Source, too_large
from wirebook.text.yaml import read_yaml

if TYPE_CHECKING:
    from wirebook.client.fetch import Cache

SUFFIXES: Final = {".json": "json", ".cereg": "json", ".yaml": "yaml", ".yml": "yaml"}


@dataclass(frozen=True, slots=True)
class Document:
    """A document that is not in a file, such as standard input: JSON or YAML, as its content shows."""

    name: str
    data: bytes


Given = str | Path | Mapping[str, Any] | Source | Document


def load_registry(
    *sources: Given, limits: DocumentLimits = DEFAULT_LIMITS, cache: Cache | None = None
) -> LoadedRegistry:
    """Everything that `sources` hold, as one registry.

    A source is a path of a file or folder, the URL of an xRegistry server or of one of its groups, a `Document`, or a
    document that is already a value. Nothing else is fetched, whatever the documents refer to. `cache` keeps the
    responses of servers for the next time.

    Raises: when nothing could be read: unreadable-file, syntax-error and the like, not-a-registry, no-documents.
    """
    problems: list[Problem] = []
    reading = _Reading(limits, problems, {} if cache is None else cache)
    origins = [origin for given in sources for origin in reading.origins(given)]
    if not origins:
        unread = [problem for problem in problems if problem.severity is Severity.ERROR]
        raise WirebookError(*(unread or [_no_documents(sources)]))
    return build_registry(origins, problems)


def build_registry(origins: list[DocumentOrigin], problems: list[Problem]) -> LoadedRegistry:
    """Normalise, put together, resolve. `problems` are what reading found."""
    stack = DocumentStack([origin.source.name for origin in origins])
    documents = tuple(normalise_document(origin.source.value, origin.log, origin.roots) for origin in origins)
    for index, (origin, document) in enumerate(zip(origins, documents, strict=True)):
        stack.add(index, document, origin.log)
    log = Log()
    registry = LoadedRegistry(
        document=stack.document,
        messages=resolve_messages(stack.document, log),
        endpoints=resolve_endpoints(stack.document, log),
        origins=tuple(origins),
        documents=documents,
        owners=stack.owners,
    )
    for xid, message in registry.messages.items():
        if message.problems:
            registry.messages[xid] = replace(message, problems=tuple(map(registry.trace, message.problems)))
    read = [problem.at(file=origin.source.name) for origin in origins for problem in origin.log.problems]
    registry.problems = (*problems, *read, *map(registry.trace, log.problems))
    return registry


@dataclass(frozen=True, slots=True)
class _Reading:
    """Reads sources; what cannot be read becomes a problem. `number` tells values apart."""

    limits: DocumentLimits
    problems: list[Problem]
    cache: Cache
    number: Iterator[int] = field(default_factory=partial(count, 1))

    def origins(self, given: Given) -> Iterator[DocumentOrigin]:
        """The registry documents of a source. In a folder anything may lie; a file that is named is a catalogue."""
        folder = isinstance(given, (str, Path)) and not _is_address(given) and is_folder(Path(given))
        for source in self._read(given):
            self.problems.extend(source.problems)
            log = Log()
            document = as_registry(source.value, log)
            if document is not None:
                yield DocumentOrigin(replace(source, value=document), log, roots_of(source.value))
                continue
            code = "skipped-file" if folder else "not-a-registry"
            slip = misspelt_collection(source.value) if isinstance(source.value, Mapping) else None
            problem = Problem(
                code=code, message=refusal_of(source.value), pointer=f"/{escape(slip[0])}" if slip else ""
            )
            self.problems.append(source.place(problem))

    def _read(self, given: Given) -> Iterator[Source]:
        """The documents of one source."""
        if isinstance(given, Source):
            yield given
        elif isinstance(given, Mapping):
            yield Source(f"<value {next(self.number)}>", dict(given))
        elif isinstance(given, Document):
            yield from self._attempt(partial(read_document, given, self.limits))
        elif isinstance(given, str) and _is_address(given):
            from wirebook.client.registry import fetch_registry  # noqa: PLC0415 (a quarter of a second)

            yield from self._attempt(partial(fetch_registry, given, self.limits, cache=self.cache))
        else:
            yield from self._read_path(Path(given))

    def _read_path(self, path: Path) -> Iterator[Source]:
        for file in documents_in(path) if is_folder(path) else [path]:
            yield from self._attempt(partial(read_file, file, self.limits))

    def _attempt(self, read: Callable[[], Source]) -> Iterator[Source]:
        try:
            yield read()
        except WirebookError as error:
            self.problems.extend(error.problems)


def _is_address(given: str | Path) -> bool:
    return isinstance(given, str) and given.lower().startswith(("http://", "https://"))


def roots_of(value: Any) -> tuple[str, ...]:
    """The addresses that a reference into this document may begin with: that of its registry."""
    address, xid = (value.get("self"), value.get("xid")) if isinstance(value, dict) else (None, None)
    if not isinstance(address, str) or "://" not in address:
        return ()
    return (address.removesuffix(xid if isinstance(xid, str) else "").rstrip("/"),)


def _no_documents(sources: tuple[Given, ...]) -> Problem:
    named = ", ".join(f"'{source}'" for source in sources if isinstance(source, (str, Path)))
    message = f"no JSON or YAML document in {named}" if named else "nothing to load was given"
    return Problem(code="no-documents", message=message)


# -- reading --------------------------------------------------------------------------------------------------------


def is_folder(path: Path) -> bool:
    """As `Path.is_dir`, and false where a path is too long to be asked for: reading it says so."""
    return os.path.isdir(path)


def documents_in(folder: Path) -> list[Path]:
    """The JSON and YAML files of a folder and those below it, in the order of their paths; hidden ones are left."""
    try:
        found = [path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file()]
    except OSError as error:  # a folder that went away meanwhile
        raise WirebookError(_unreadable(str(folder), error.strerror or str(error))) from None
    return sorted(path for path in found if not any(part.startswith(".") for part in path.relative_to(folder).parts))


def read_file(path: Path, limits: DocumentLimits = DEFAULT_LIMITS) -> Source:
    """The document in a file. Raises: unreadable-file, too-large, and what reading it finds."""
    name = str(path)
    try:
        if path.exists() and not path.is_file():
            raise WirebookError(_unreadable(name, "it is no regular file"))
        size = path.stat().st_size
        if size > limits.size:
            raise WirebookError(too_large(name, size, limits))
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        raise WirebookError(_unreadable(name, getattr(error, "strerror", None) or str(error))) from None
    return read_text(data, name, limits=limits)


def _unreadable(name: str, reason: str) -> Problem:
    return Problem(code="unreadable-file", message=f"'{name}' cannot be read: {reason}", file=name)


def read_document(document: Document, limits: DocumentLimits = DEFAULT_LIMITS) -> Source:
    """Raises: too-large, and what reading it finds."""
    if len(document.data) > limits.size:
        raise WirebookError(too_large(document.name, len(document.data), limits))
    return read_text(document.data, document.name, limits=limits)


def kind_of(name: str, data: bytes) -> str:
    """``json`` or ``yaml``, by the suffix of the name, else by the content: JSON begins with a brace or a bracket."""
    by_content = "json" if data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[", b"") else "yaml"
    return SUFFIXES.get(os.path.splitext(name)[1].lower(), by_content)


def read_text(data: bytes, name: str, kind: str | None = None, limits: DocumentLimits = DEFAULT_LIMITS) -> Source:
    """A document of a known kind, else of that which its name and content show."""
    kind = kind or kind_of(name, data)
    try:
        return read_json(data, name, limits) if kind == "json" else read_yaml(data, name, limits)
    except WirebookError as error:
        if error.problems[0].code == "syntax-error" and _is_capture(data):
            message = "this is a capture, one message on each line, not an xRegistry catalogue; match it against a "
            message += "catalogue: wirebook match FILE --catalog CATALOGUE"
            raise WirebookError(Problem(code="not-a-registry", message=message, file=name, line=1, column=1)) from None
        raise


def _is_capture(data: bytes) -> bool:
    """Is the first line a captured message or an event?"""
    line = data.lstrip().partition(b"\n")[0]
    try:
        kind = document_kind(parse_json(line)) if line.startswith(b"{") else None
    except JsonError:
        return False
    return kind is not None and kind[1] == CAPTURE
