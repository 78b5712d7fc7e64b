"""Evaluate filters in the database.

Conditions on columns narrow down the rows, and `wirebook.core.query.filters` tests the remaining rows.
The number of queries depends on the filter only: at most two per level of a term, one of them for cross-references.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, FromClause, Select, func, select

from wirebook.core.dotpath import PathMember
from wirebook.core.model.compiled import Model
from wirebook.core.query.evaluation import FilterEvaluation, Step, Term
from wirebook.core.query.filters import Expression, Level
from wirebook.storage.columns import (
    EntityColumns,
    MemberReader,
    group_columns,
    meta_columns,
    resource_columns,
    version_columns,
)
from wirebook.storage.conditions import ANYTHING, condition
from wirebook.storage.keys import one_of
from wirebook.storage.reading import is_default
from wirebook.storage.streaming import rows
from wirebook.storage.tables import GROUPS, RESOURCES, VERSIONS

SHARED: Final = RESOURCES.alias("target")
"""The target of a cross-reference."""

Test = Callable[[Sequence[Any]], bool]
"""A function that returns whether a row matches."""


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of a level.

    Shape: `keys` has the row keys from the Group down, `entity` the columns of the entity, and `meta`, for a Resource,
    those of its meta. `narrows`: conditions on columns may be used to exclude rows.
    """

    source: FromClause
    where: tuple[ColumnElement[bool], ...]
    keys: tuple[ColumnElement[int], ...]
    entity: EntityColumns
    meta: EntityColumns | None = None
    narrows: bool = True


class Search:
    """Evaluates the terms of a filter below a target.

    `within` has the keys of the Group and the Resource of the target; it is empty for the Registry and for a collection
    of Groups.
    """

    def __init__(self, connection: Connection, model: Model, within: tuple[int, ...] = ()) -> None:
        self._connection, self._model, self._within = connection, model, within
        self._dialect = connection.dialect.name

    def decide(self, evaluation: FilterEvaluation) -> None:
        """Evaluate the terms that remain after `FilterEvaluation.enter`."""
        for term in evaluation.terms:
            self._decide(term, evaluation)

    def _decide(self, term: Term, evaluation: FilterEvaluation) -> None:
        """Evaluate a term from level to level, and add the entities that its last step leaves to the result."""
        start, above = len(evaluation.level), None
        *steps, last = term.steps
        for step in steps:
            keys_at_level = {keys[-1] for keys in self._matches(step, above)}
            evaluation.result.passed[term.index, step.level] = keys_at_level
            if not keys_at_level:
                return
            above = (step.level, keys_at_level)
        found_in: dict[tuple[int, ...], set[int]] = {}
        for *parents, key in self._matches(last, above):
            found_in.setdefault((0, *parents)[start:], set()).add(key)
        for above_them, keys in found_in.items():
            evaluation.result.add(term.index, last.level, above_them, keys)

    def _matches(self, step: Step, above: tuple[Level, set[int]] | None) -> Iterator[tuple[int, ...]]:
        """Yield the keys, from the Group down, of the entities of a level for which its expressions hold."""
        for tables in self._tables(step):
            query, decides = self._query(step, tables, above)
            depth = len(tables.keys)
            for row in rows(self._connection, query):
                if decides is None or decides(row):
                    yield tuple(row[:depth])

    def _query(
        self, step: Step, tables: Tables, above: tuple[Level, set[int]] | None
    ) -> tuple[Select[Any], Test | None]:
        """Return the query of a step, whose columns start with the keys, and the test of its rows.

        The test is None if all rows match.
        """
        columns, where = list(tables.keys), list(tables.where)
        tests: list[Test] = []
        for entity_columns, about in ((tables.entity, False), (tables.meta, True)):
            open_ = []
            for expression in step.expressions:
                if entity_columns is not None and expression.meta is about:
                    narrowing = condition(expression, entity_columns, self._dialect) if tables.narrows else ANYTHING
                    where.append(narrowing.sql)
                    open_ += [] if narrowing.exact else [expression]
            if entity_columns is not None and open_:
                member_reader = MemberReader(entity_columns, _member_names(open_), len(columns))
                columns += member_reader.columns
                tests.append(_row_test(member_reader, open_))
        query = Select[Any](*columns).select_from(tables.source).where(*where)
        if above is not None:
            query = query.where(one_of(self._connection, tables.keys[len(above[0]) - 1], above[1]))
        if len(tests) < 2:
            return query, tests[0] if tests else None
        return query, lambda row: all(test(row) for test in tests)

    # -- levels ---------------------------------------------------------------------------------------------------

    def _tables(self, step: Step) -> Iterable[Tables]:
        depth = len(step.level)
        if depth == 1:
            type_ = self._model.groups[step.level[0]]
            columns = group_columns(type_.plural, type_.id_name)
            return [Tables(GROUPS, (GROUPS.c.type == type_.plural,), (GROUPS.c.key,), columns)]
        tables = self._resources if depth == 2 else self._versions
        return [tables(step, RESOURCES), tables(step, SHARED)]

    def _resources(self, step: Step, shown: FromClause) -> Tables:
        id_name = self._model.groups[step.level[0]].resources[step.level[1]].id_name
        entity, meta = resource_columns(id_name), meta_columns(id_name, shown)
        source: FromClause = RESOURCES
        own = ((PathMember(id_name),), (PathMember("xid"),))  # other paths lead into the default Version
        needs_version = any(not expression.meta and expression.path not in own for expression in step.expressions)
        if shown is SHARED:
            source = RESOURCES.outerjoin(SHARED, _is_target()).outerjoin(VERSIONS, _is_default_of(SHARED))
        elif needs_version:
            source = RESOURCES.join(VERSIONS, _is_default_of(RESOURCES))
        keys = (RESOURCES.c.parent, RESOURCES.c.key)
        index = self._in_target(step.level, by_group=shown is RESOURCES and not needs_version)
        where = (*index, _is_reference(shown is SHARED))
        return Tables(source, where, keys, entity, meta, narrows=shown is RESOURCES)

    def _versions(self, step: Step, shown: FromClause) -> Tables:
        id_name = self._model.groups[step.level[0]].resources[step.level[1]].id_name
        source: FromClause = RESOURCES if shown is RESOURCES else RESOURCES.join(SHARED, _is_target())
        source = source.join(VERSIONS, VERSIONS.c.parent == shown.c.key)
        keys = (RESOURCES.c.parent, RESOURCES.c.key, VERSIONS.c.key)
        where = (*self._in_target(step.level), *([_is_reference(True)] if shown is SHARED else []))
        return Tables(source, where, keys, version_columns(id_name), narrows=shown is RESOURCES)

    def _in_target(self, level: Level, *, by_group: bool = False) -> list[ColumnElement[bool]]:
        """Return the conditions for Resources below the target.

        `by_group`: use the index on Groups. Filters on Versions have better indexes.
        """
        if len(self._within) == 2:
            return [RESOURCES.c.key == self._within[1]]
        own, group = RESOURCES.c.type == level[1], RESOURCES.c.parent if by_group else RESOURCES.c.parent + 0
        if self._within:
            return [own, group == self._within[0]]
        return [own, group.in_(select(GROUPS.c.key).where(GROUPS.c.type == level[0]))]


def _is_target() -> ColumnElement[bool]:
    return (SHARED.c.xid == RESOURCES.c.xref) & SHARED.c.xref.is_(None)


def _is_default_of(shown: FromClause) -> ColumnElement[bool]:
    return is_default(shown.c.key, shown.c.defaultid)


def _is_reference(yes: bool) -> ColumnElement[bool]:
    """Return the condition that a Resource is a cross-reference, or that it is not.

    Few Resources are cross-references, so only the first condition uses the index.
    """
    return RESOURCES.c.xref > "" if yes else func.coalesce(RESOURCES.c.xref, "") == ""


def _member_names(expressions: Iterable[Expression]) -> list[str] | None:
    """Return the names of the members that expressions test; None if an expression tests members of any name."""
    first = [expression.path[0] for expression in expressions]
    names = [step.name for step in first if isinstance(step, PathMember)]
    return names if len(names) == len(first) else None


def _row_test(member_reader: MemberReader, expressions: Sequence[Expression]) -> Test:
    if len(expressions) == 1:
        holds = expressions[0].holds
        return lambda row: holds(member_reader.entity(row))

    def test(row: Sequence[Any]) -> bool:
        entity = member_reader.entity(row)
        return all(expression.holds(entity) for expression in expressions)

    return test
