"""Applying a filter: which entities an answer has, decided while they pass in order.

Whatever expression holds for an entity holds for all that is below it. An answer has the leaves for which all
expressions of one term hold, and what is above them.

Spec: core/spec.md#filter-flag.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from wirebook.core.filters import Filter, Level
from wirebook.core.model import GroupType, Model, ResourceType
from wirebook.core.rows import GroupRow, ResourceRow, VersionRow, parse_members
from wirebook.core.streams import Streams

State = tuple[frozenset[int], ...]
"""For each term of a filter, which of its expressions hold."""


class Sieve:
    """Decides for a leaf, from what holds for the entities above it."""

    def __init__(self, filter_: Filter) -> None:
        self.filter = filter_
        self._levels = {expression.level for term in filter_ for expression in term}
        self.levels = {level[:depth] for level in self._levels for depth in range(1, len(level) + 1)}
        """The levels of which all entities have to pass."""

    @property
    def start(self) -> State:
        return tuple(frozenset() for _ in self.filter)

    def looks_at(self, level: Level) -> bool:
        return level in self._levels

    def enter(
        self, state: State, level: Level, entity: Mapping[str, Any], meta: Mapping[str, Any] | None = None
    ) -> State:
        """The state below an entity. `meta` is a Resource's."""
        return tuple(
            known
            | {
                i
                for i, expression in enumerate(term)
                if expression.level == level and expression.holds((meta or {}) if expression.meta else entity)
            }
            for known, term in zip(state, self.filter, strict=True)
        )

    def takes(self, state: State) -> bool:
        """Whether a leaf with this state, and all below an entity with it, is in the answer."""
        return any(len(known) == len(term) for known, term in zip(state, self.filter, strict=True))

    def may_take(self, state: State, level: Level) -> bool:
        """Whether something below an entity of this level may still be in the answer."""
        depth = len(level)
        return any(
            all(
                i in known or (len(expression.level) > depth and expression.level[:depth] == level)
                for i, expression in enumerate(term)
            )
            for known, term in zip(state, self.filter, strict=True)
        )


@dataclass(slots=True)
class Kept:
    """What a filter left.

    Shape: by level, `states` of the entities that are left, by key; `counts` of how many are left below each; `whole`
    are those of which everything is.
    """

    filter: Filter
    states: dict[Level, dict[int, State]] = field(default_factory=dict)
    counts: dict[Level, dict[int, int]] = field(default_factory=dict)
    whole: dict[Level, set[int]] = field(default_factory=dict)

    def has(self, level: Level, key: int, parent: int) -> bool:
        if parent in self.whole.get(level[:-1], ()):
            self.whole.setdefault(level, set()).add(key)
            return True
        return key in self.states.get(level, {})

    def residual(self, level: Level, collection: str, parent: int) -> list[str]:
        """The filter of the URL of a collection below an entity: what is left to be asked; no text asks for all."""
        if parent in self.whole.get(level, ()):
            return []
        start = tuple(frozenset[int]() for _ in self.filter)
        return residual(self.filter, level, collection, self.states.get(level, {}).get(parent, start))

    def count(self, level: Level, parent: int, every: int) -> int:
        """How many of a level are left below an entity that has `every` of them."""
        return every if parent in self.whole.get(level[:-1], ()) else self.counts.get(level, {}).get(parent, 0)

    def add(self, level: Level, key: int, parent: int, state: State, *, whole: bool) -> None:
        self.states.setdefault(level, {})[key] = state
        below = self.counts.setdefault(level, {})
        below[parent] = below.get(parent, 0) + 1
        if whole:
            self.whole.setdefault(level, set()).add(key)


def _some(found: list[bool]) -> bool:
    """Whether one is true. All were looked at: their rows come one after the other, and none may be left."""
    return any(found)


class Sifting:
    """Goes through everything below a target, once."""

    def __init__(self, sieve: Sieve, model: Model, streams: Streams) -> None:
        self.kept = Kept(sieve.filter)
        self._sieve, self._model, self._streams = sieve, model, streams
        self.start = sieve.start
        self._open: dict[Level, Any] = {}

    def registry(self, members: Mapping[str, Any]) -> bool:
        """Whether anything is left of the Registry."""
        state = self._sieve.enter(self._sieve.start, (), {**members, "xid": "/"})
        self.kept.states[()] = {0: state}
        if self._sieve.takes(state):
            self.kept.whole[()] = {0}
            return True
        return _some([self.groups(type_, state) for type_ in self._model.groups.values()])

    def groups(self, type_: GroupType, state: State) -> bool:
        """Whether a Group of a type is left. All are looked at, for their rows come one after the other."""
        level = (type_.plural,)
        return _some([self.group(row, type_, state) for row in self._rows(level, 0)])

    def group(self, row: GroupRow, type_: GroupType, state: State) -> bool:
        level = (type_.plural,)
        if self._sieve.looks_at(level):
            state = self._sieve.enter(state, level, entity_of(row, level, self._model, ""))
        takes, may = self._sieve.takes(state), self._sieve.may_take(state, level)
        owner = f"/{type_.plural}/{row.id}"
        may = may and not takes
        left = _some([self.resources((*level, each), state, row.key, owner, may=may) for each in type_.resources])
        if takes or left:
            self.kept.add(level, row.key, row.parent, state, whole=takes)
        return takes or left

    def resources(self, level: Level, state: State, parent: int, owner: str, *, may: bool) -> bool:
        """Whether a Resource of a type is left in a Group. Without `may` they are let pass, unseen."""
        return _some([self.resource(row, level, state, owner, may=may) for row in self._rows(level, parent)])

    def resource(self, row: ResourceRow, level: Level, state: State, owner: str, *, may: bool) -> bool:
        type_, inner = self._model.groups[level[0]].resources[level[1]], (*level, "versions")
        xid = f"{owner}/{type_.plural}/{row.id}"
        if may and self._sieve.looks_at(level):
            state = self._sieve.enter(state, level, _default(row, type_, xid), _meta(row, type_, xid))
        takes = may and self._sieve.takes(state)
        if may and not takes and self._sieve.may_take(state, level):
            left = self.versions(inner, state, xid, row)
        else:
            left = _some([False for _ in self._rows(inner, row.key)])
        if takes or left:
            self.kept.add(level, row.key, row.parent, state, whole=takes)
        return takes or left

    def meta(self, row: ResourceRow, level: Level, xid: str) -> bool:
        """Whether the meta of a Resource is left, on its own."""
        type_ = self._model.groups[level[0]].resources[level[1]]
        return self._sieve.takes(self._sieve.enter(self.start, level, {}, _meta(row, type_, xid)))

    def versions(self, level: Level, state: State, owner: str, resource: ResourceRow) -> bool:
        """Whether a Version of a Resource is left. `owner` is the Resource's xid."""
        return _some([self.version(row, level, state, owner, resource) for row in self._rows(level, resource.key)])

    def version(self, row: VersionRow, level: Level, state: State, owner: str, resource: ResourceRow) -> bool:
        type_ = self._model.groups[level[0]].resources[level[1]]
        ids = {type_.id_name: resource.id, "isdefault": row.id == resource.default}
        entity = ids | _version(row, f"{owner}/versions/{row.id}")
        state = self._sieve.enter(state, level, entity)
        takes = self._sieve.takes(state)
        if takes:
            self.kept.add(level, row.key, row.parent, state, whole=True)
        return takes

    # -- rows -----------------------------------------------------------------------------------------------------

    def _rows(self, level: Level, parent: int) -> Iterator[Any]:
        """The rows of a level below an entity; none of a level that the filter does not reach."""
        if level not in self._sieve.levels:
            return iter(())
        if level not in self._open:
            opening = (self._streams.groups, self._streams.resources, self._streams.versions)[len(level) - 1]
            self._open[level] = opening(level)
        rows: Iterator[Any] = self._open[level].of(parent)
        return rows


def entity_of(row: GroupRow | ResourceRow | VersionRow, level: Level, model: Model, owner: str) -> dict[str, Any]:
    """A row as the entity that filters and sorts look at. `owner` is the xid of what holds it."""
    group = model.groups[level[0]]
    if isinstance(row, GroupRow):
        return {group.id_name: row.id, "xid": f"/{level[0]}/{row.id}", **parse_members(row.text)}
    if isinstance(row, ResourceRow):
        return _default(row, group.resources[level[1]], f"{owner}/{level[1]}/{row.id}")
    return _version(row, f"{owner}/versions/{row.id}")


def _version(row: VersionRow, xid: str) -> dict[str, Any]:
    return {"versionid": row.id, "xid": xid, **parse_members(row.head), **parse_members(row.tail)}


def _default(row: ResourceRow, type_: ResourceType, xid: str) -> dict[str, Any]:
    """A Resource as an entity: its default Version under its own name."""
    entity: dict[str, Any] = {type_.id_name: row.id, "xid": xid}
    if row.version is not None:
        entity |= {"versionid": row.version.id, "isdefault": True}
        entity |= parse_members(row.version.head) | parse_members(row.version.tail)
    return entity


def _meta(row: ResourceRow, type_: ResourceType, xid: str) -> dict[str, Any]:
    meta: dict[str, Any] = {type_.id_name: row.id, "xid": f"{xid}/meta", "xref": row.xref}
    if row.version is not None:
        meta |= parse_members(row.text)
        meta |= {"defaultversionid": row.default, "defaultversionsticky": row.sticky}
    return meta


def residual(filter_: Filter, level: Level, collection: str, state: State) -> list[str]:
    """The filter of the URL of a collection below an entity of `level`: what is left to be asked, from there.

    No text: everything there is in the answer.
    """
    inner = (*level, collection)
    left: list[str] = []
    for known, term in zip(state, filter_, strict=True):
        still = [each for i, each in enumerate(term) if i not in known]
        if not still:
            return []
        if all(each.level[: len(inner)] == inner for each in still):
            left.append(",".join(each.text_below(len(inner)) for each in still))
    return list(dict.fromkeys(left))
