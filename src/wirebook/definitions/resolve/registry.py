"""A loaded registry: its documents as one, in 1.0-rc4, with every reference followed.

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
    """A document, what its normalisation noted (where a canonical pointer stood in it), and its registry's address."""

    source: Source
    log: Log
    roots: tuple[str, ...] = ()

    def trace(self, problem: Problem) -> Problem:
        """`problem`, found at a canonical pointer, as it concerns the document that was written."""
        return problem.at(pointer=self.log.source_of(problem.pointer or ""), file=self.source.name)


@dataclass
class LoadedRegistry:
    """Everything that was loaded.

    Shape: `document` is one registry in the document form of 1.0-rc4, `documents` the parts it was put together from,
    one for each of `origins`; `messages` and `endpoints` are resolved, by XID; `problems` have pointers into the
    documents as they were written, `diagnostics` their lines and columns too.
    """

    document: dict[str, Any]
    messages: dict[str, ResolvedMessage]
    endpoints: dict[str, ResolvedEndpoint]
    problems: tuple[Problem, ...] = ()
    origins: tuple[DocumentOrigin, ...] = ()
    documents: tuple[dict[str, Any], ...] = ()
    owners: dict[str, int] = field(default_factory=dict)

    @cached_property
    def diagnostics(self) -> tuple[Problem, ...]:
        """What reading, normalising and resolving found, each with its file, line and column.

        Cost: the positions of every document that has a finding are worked out, once.
        """
        return tuple(map(self.place, self.problems))

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the normalised document: equal for two loads that mean the same."""
        text = json.dumps(self.document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]

    @property
    def unread(self) -> tuple[Problem, ...]:
        """What kept a source from being loaded: whoever needs all of them stops here."""
        read = {source.name for source in self.sources}
        return tuple(p for p in self.problems if p.severity is Severity.ERROR and p.file not in read)

    @property
    def sources(self) -> tuple[Source, ...]:
        return tuple(origin.source for origin in self.origins)

    def owner(self, pointer: str) -> DocumentOrigin | None:
        """The document that the entity at a canonical pointer came from."""
        parts = pointer.split("/")
        for length in (5, 3):
            index = self.owners.get("/".join(parts[:length]))
            if index is not None:
                return self.origins[index]
        return self.origins[0] if self.origins else None

    def trace(self, problem: Problem) -> Problem:
        """A problem found at a canonical pointer, as it concerns the document it came from."""
        owner = self.owner(problem.pointer or "")
        return problem if owner is None else owner.trace(problem)

    def place(self, problem: Problem) -> Problem:
        """A problem with its line and column, where its file is one of the documents."""
        source = self._by_name.get(problem.file or "")
        return problem if source is None else source.place(problem)

    @cached_property
    def _by_name(self) -> dict[str, Source]:
        return {source.name: source for source in self.sources}
