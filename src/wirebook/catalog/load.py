"""Load catalogues: files, folders, URLs and parsed documents become one normalised and resolved registry.

    registry = load_registry("catalogue.json", "more/", "https://registry.example.com")

Rule violations do not prevent loading. A source that cannot be read becomes a diagnostic, and the others are loaded.
Loading fails only if no source can be read.

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

import orjson

from wirebook.core.collector import without_collector
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
from wirebook.text.json_documents import LONE_SURROGATE, read_json
from wirebook.text.pointers import escape
from wirebook.text.source import DEFAULT_LIMITS, DocumentLimits, Source, too_large
from wirebook.text.yaml import read_yaml

if TYPE_CHECKING:
    from wirebook.client.fetch import Cache

SUFFIXES: Final = {".json": "json", ".cereg": "json", ".yaml": "yaml", ".yml": "yaml"}


@dataclass(frozen=True, slots=True)
class Document:
    """A document that is not in a file, such as standard input. The format, JSON or YAML, is detected."""

    name: str
    data: bytes


RegistrySource = str | Path | Mapping[str, Any] | Source | Document


def load_registry(
    *sources: RegistrySource, limits: DocumentLimits = DEFAULT_LIMITS, cache: Cache | None = None
) -> LoadedRegistry:
    """Load all sources as one registry.

    A source is the path of a file or folder, the URL of an xRegistry server or of one of its groups, a `Document`, or a
    parsed document. References to other documents are not fetched. `cache` keeps the responses of servers, so that
    the next load with the same cache fetches only what has changed.

    Raises: WirebookError if no source can be read (``unreadable-file``, ``syntax-error``, ``not-a-registry``,
    ``no-documents``, ...).
    """
    problems: list[Problem] = []
    reader = _SourceReader(limits, problems, {} if cache is None else cache)
    with without_collector():
        origins = [origin for source in sources for origin in reader.read(source)]
        if origins:
            return build_registry(origins, problems)
    if errors := [problem for problem in problems if problem.severity is Severity.ERROR]:
        raise WirebookError(*errors)
    paths = ", ".join(f"'{source}'" for source in sources if isinstance(source, (str, Path)))
    message = f"no JSON or YAML document in {paths}" if paths else "no source to load; name a file, a folder or a URL"
    raise WirebookError(Problem(code="no-documents", message=message))


def build_registry(origins: list[DocumentOrigin], problems: list[Problem]) -> LoadedRegistry:
    """Normalise the documents, merge them and resolve their references. `problems` are those found while reading."""
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
    normalisation = [problem.at(file=origin.source.name) for origin in origins for problem in origin.log.problems]
    registry.problems = (*problems, *normalisation, *map(registry.trace, log.problems))
    return registry


@dataclass(frozen=True, slots=True)
class _SourceReader:
    """Reads sources. A source that cannot be read becomes a problem. `number` counts parsed documents, to name them."""

    limits: DocumentLimits
    problems: list[Problem]
    cache: Cache
    number: Iterator[int] = field(default_factory=partial(count, 1))

    def read(self, source: RegistrySource) -> Iterator[DocumentOrigin]:
        """Yield the registry documents of a source. Other documents are skipped in folders, and errors otherwise."""
        folder = isinstance(source, (str, Path)) and not is_url(source) and is_folder(Path(source))
        for document in self._documents(source):
            self.problems.extend(document.problems)
            log = Log()
            registry = as_registry(document.value, log)
            if registry is not None:
                yield DocumentOrigin(replace(document, value=registry), log, roots_of(document.value))
                continue
            misspelt = misspelt_collection(document.value) if isinstance(document.value, Mapping) else None
            problem = Problem(
                code="skipped-file" if folder else "not-a-registry",
                message=refusal_of(document.value),
                pointer=f"/{escape(misspelt[0])}" if misspelt else "",
            )
            self.problems.append(document.place(problem))

    def _documents(self, source: RegistrySource) -> Iterator[Source]:
        if isinstance(source, Source):
            yield source
        elif isinstance(source, Mapping):
            yield from self._attempt(partial(_as_source, f"<value {next(self.number)}>", source))
        elif isinstance(source, Document):
            yield from self._attempt(partial(read_document, source, self.limits))
        elif isinstance(source, str) and is_url(source):
            from wirebook.client.registry import fetch_registry  # noqa: PLC0415 (a quarter of a second)

            yield from self._attempt(partial(fetch_registry, source, self.limits, cache=self.cache))
        else:
            path = Path(source)
            for file in documents_in(path) if is_folder(path) else [path]:
                yield from self._attempt(partial(read_file, file, self.limits))

    def _attempt(self, read: Callable[[], Source]) -> Iterator[Source]:
        try:
            yield read()
        except WirebookError as error:
            self.problems.extend(error.problems)


def _as_source(name: str, value: Mapping[str, Any]) -> Source:
    """Return the source of a parsed document, after a check for lone surrogates in its strings.

    Raises: WirebookError (syntax-error)
    """
    try:
        orjson.dumps(value)
    except (TypeError, RecursionError):  # a lone surrogate, or a value that JSON does not have
        _check_texts(name, value)
    return Source(name, dict(value))


def _check_texts(name: str, value: Mapping[str, Any]) -> None:
    """Check that the strings of a parsed document have no lone surrogates.

    Raises: WirebookError (syntax-error)
    """
    inner: list[tuple[str, Any]] = [("", value)]
    seen = set[int]()
    while inner:
        pointer, part = inner.pop()
        if id(part) in seen:  # a container may contain itself
            continue
        texts = [key for key in part if isinstance(key, str)] if isinstance(part, Mapping) else [part]
        for text in texts:
            if isinstance(text, str) and not text.isascii() and (lone := LONE_SURROGATE.search(text)):
                message = f"half of a surrogate pair in a string, found {text[lone.start() :][:20]!a}"
                hint = "remove it, or write the character that it is half of"
                raise WirebookError(Problem("syntax-error", message, file=name, pointer=pointer, hint=hint))
        if isinstance(part, Mapping | list | tuple):
            seen.add(id(part))
        if isinstance(part, Mapping):
            inner += ((f"{pointer}/{escape(key)}", member) for key, member in part.items())
        elif isinstance(part, list | tuple):
            inner += ((f"{pointer}/{number}", member) for number, member in enumerate(part))


def is_url(source: str | Path) -> bool:
    return isinstance(source, str) and source.lower().startswith(("http://", "https://"))


def roots_of(value: Any) -> tuple[str, ...]:
    """Return the URL of the registry that a document comes from, if known. References may begin with this URL."""
    url, xid = (value.get("self"), value.get("xid")) if isinstance(value, dict) else (None, None)
    if not isinstance(url, str) or "://" not in url:
        return ()
    return (url.removesuffix(xid if isinstance(xid, str) else "").rstrip("/"),)


# -- reading documents ----------------------------------------------------------------------------------------------


def is_folder(path: Path) -> bool:
    """Return whether a path is a folder; False for a path that is too long, which reading reports."""
    return os.path.isdir(path)


def documents_in(folder: Path) -> list[Path]:
    """Return the JSON and YAML files in a folder and its subfolders, sorted by path, without hidden ones."""
    try:
        paths = [path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file()]
    except OSError as error:  # the folder was removed in the meantime
        raise WirebookError(_unreadable(str(folder), error.strerror or str(error))) from None
    return sorted(path for path in paths if not any(part.startswith(".") for part in path.relative_to(folder).parts))


def read_file(path: Path, limits: DocumentLimits = DEFAULT_LIMITS) -> Source:
    """Read the document in a file.

    Raises: WirebookError (``unreadable-file``, ``too-large``, and as `read_text`).
    """
    name = str(path)
    try:
        if path.exists() and not path.is_file():
            raise WirebookError(_unreadable(name, "it is not a regular file"))
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
    """Read a document that is not in a file. Raises: WirebookError (``too-large``, and as `read_text`)."""
    if len(document.data) > limits.size:
        raise WirebookError(too_large(document.name, len(document.data), limits))
    return read_text(document.data, document.name, limits=limits)


def document_format(name: str, data: bytes) -> str:
    """Return ``json`` or ``yaml``, by the suffix of the name, else by the content: JSON begins with a bracket."""
    by_content = "json" if data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[", b"") else "yaml"
    return SUFFIXES.get(os.path.splitext(name)[1].lower(), by_content)


def read_text(data: bytes, name: str, format: str | None = None, limits: DocumentLimits = DEFAULT_LIMITS) -> Source:
    """Parse a document. `format`: ``json`` or ``yaml``; detected by default.

    Raises: WirebookError (``syntax-error``, ``not-a-registry``, ...).
    """
    format = format or document_format(name, data)
    try:
        return read_json(data, name, limits) if format == "json" else read_yaml(data, name, limits)
    except WirebookError as error:
        if error.problems[0].code == "syntax-error" and _is_capture(data):
            message = "this is a capture (one message per line), not an xRegistry catalogue; match it against a "
            message += "catalogue: wirebook match FILE --catalog CATALOGUE"
            raise WirebookError(Problem(code="not-a-registry", message=message, file=name, line=1, column=1)) from None
        raise


def _is_capture(data: bytes) -> bool:
    """Return whether the first line is a captured message or an event."""
    line = data.lstrip().partition(b"\n")[0]
    try:
        kind = document_kind(parse_json(line)) if line.startswith(b"{") else None
    except JsonError:
        return False
    return kind is not None and kind[1] == CAPTURE
