"""A loaded registry: its documents, merged into one document of 1.0-rc4, with references resolved.

Spec: docs/semantics.md; core/spec.md#registry-design.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from wirebook.definitions.normalize.log import Log
from wirebook.definitions.resolve.endpoints import ResolvedEndpoint
from wirebook.definitions.resolve.messages import ResolvedMessage
from wirebook.problems import Problem, Severity
from wirebook.text.source import Source


@dataclass(frozen=True)
class DocumentOrigin:
    """A source document, the log of its normalisation, and the URLs that references into its registry begin with."""

    source: Source
    log: Log
    roots: tuple[str, ...] = ()

    def trace(self, problem: Problem) -> Problem:
        """Return a problem with its file, and with its canonical pointer replaced by that in the source document."""
        return problem.at(pointer=self.log.source_of(problem.pointer or ""), file=self.source.name)


@dataclass(repr=False)
class LoadedRegistry:
    """The result of loading.

    Shape: `document` is the merged registry document of 1.0-rc4; `documents` are the documents before merging, one for
    each of `origins`; `owners` maps pointers of groups, their attributes and resources to the index of the document (an
    attribute only if it is in another document than the group); `messages` and `endpoints` are resolved, by XID;
    `problems` have pointers into the source documents, and `diagnostics` also have lines and columns.
    """

    document: dict[str, Any]
    messages: dict[str, ResolvedMessage]
    endpoints: dict[str, ResolvedEndpoint]
    problems: tuple[Problem, ...] = ()
    origins: tuple[DocumentOrigin, ...] = ()
    documents: tuple[dict[str, Any], ...] = ()
    owners: dict[str, int] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"LoadedRegistry(messages={len(self.messages)}, endpoints={len(self.endpoints)})"

    @cached_property
    def diagnostics(self) -> tuple[Problem, ...]:
        """The problems found while reading, normalising and resolving, with file, line and column.

        Cost: the positions in each document with a problem are computed once.
        """
        return tuple(map(self.place, self.problems))

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the merged document. Registries with the same content have the same digest."""
        text = json.dumps(self.document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]

    @property
    def unread(self) -> tuple[Problem, ...]:
        """The errors of sources that could not be loaded. Commands that need every source fail with these errors."""
        loaded = {source.name for source in self.sources}
        return tuple(
            problem for problem in self.problems if problem.severity is Severity.ERROR and problem.file not in loaded
        )

    @property
    def sources(self) -> tuple[Source, ...]:
        """The source documents, in the order of loading."""
        return tuple(origin.source for origin in self.origins)

    def owner(self, pointer: str) -> DocumentOrigin | None:
        """Return the document that contains the value at a canonical pointer."""
        parts = pointer.split("/")
        for length in (5, 4, 3):
            index = self.owners.get("/".join(parts[:length]))
            if index is not None:
                return self.origins[index]
        return self.origins[0] if self.origins else None

    def trace(self, problem: Problem) -> Problem:
        """Return a problem with its file, and with its canonical pointer replaced by that in the source document."""
        owner = self.owner(problem.pointer or "")
        return problem if owner is None else owner.trace(problem)

    def place(self, problem: Problem) -> Problem:
        """Return a problem with its line and column, if its file is one of the documents."""
        source = self._by_name.get(problem.file or "")
        return problem if source is None else source.place(problem)

    @cached_property
    def _by_name(self) -> dict[str, Source]:
        return {source.name: source for source in self.sources}
