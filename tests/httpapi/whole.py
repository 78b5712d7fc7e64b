"""A second implementation of filters, sorts and counts, which evaluates a full export; queries must match it.

An answer without a filter and with everything inlined is a tree. `left` says what a filter leaves of it, by the words
of the text: the leaves for which all expressions of a term hold, whatever entity on the way down they are about.

Spec: core/spec.md#filter-flag; core/spec.md#sort-flag.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wirebook.core.dotpath import values_at
from wirebook.core.model.compiled import Model
from wirebook.core.model.target import RequestTarget
from wirebook.core.query.comparison import comparable
from wirebook.core.query.filters import (
    Expression,
    Filter,
    Level,
    attributes_of,
    collections,
    level_of,
    response_only_members,
    type_at,
    types_at,
)
from wirebook.core.query.flags import Sort

Held = tuple[frozenset[Expression], ...]
"""Of each term the expressions that hold for an entity, or for one above it."""


def left(answer: dict[str, Any], filter_: Filter, target: RequestTarget, model: Model) -> dict[str, Any] | None:
    """What a filter leaves of an answer; None where nothing is left of an entity."""
    level, none = level_of(target), tuple(frozenset[Expression]() for _ in filter_)
    if target.is_collection:
        return _entities(answer, filter_, level, none, model)
    if target.kind == "meta":
        held = _enter(none, filter_, level, {}, answer, model)
        return answer if _is_complete(held, filter_) else None
    return _entity(answer, filter_, level, none, model)


def _entities(answer: dict[str, Any], filter_: Filter, level: Level, held: Held, model: Model) -> dict[str, Any]:
    entities = {id_: _entity(entity, filter_, level, held, model) for id_, entity in answer.items()}
    return {id_: entity for id_, entity in entities.items() if entity is not None}


def _entity(entity: dict[str, Any], filter_: Filter, level: Level, held: Held, model: Model) -> dict[str, Any] | None:
    held = _enter(held, filter_, level, entity, entity.get("meta", {}), model)
    selected, has_leaves = dict(entity), False
    for plural in collections(level, model):
        if plural in entity:
            selected[plural] = _entities(entity[plural], filter_, (*level, plural), held, model)
            selected[f"{plural}count"] = len(selected[plural])
            has_leaves = has_leaves or bool(selected[plural])
    return selected if has_leaves or _is_complete(held, filter_) else None


def _enter(
    held: Held, filter_: Filter, level: Level, entity: Mapping[str, Any], meta: Mapping[str, Any], model: Model
) -> Held:
    own = {name: value for name, value in entity.items() if name not in response_only_members(level, model, meta=False)}
    own_meta = {
        name: value for name, value in meta.items() if name not in response_only_members(level, model, meta=True)
    }
    return tuple(
        known
        | {
            expression
            for expression in term
            if expression.level == level and expression.holds(own_meta if expression.meta else own)
        }
        for known, term in zip(held, filter_, strict=True)
    )


def _is_complete(held: Held, filter_: Filter) -> bool:
    return any(known == frozenset(term) for known, term in zip(held, filter_, strict=True))


def in_order(answer: dict[str, Any], sort: Sort | None, target: RequestTarget, model: Model) -> list[str]:
    """The ids of a collection in their order: what has no value first, ids without case among equals."""
    if sort is None:
        return sorted(answer, key=str.lower)
    type_ = type_at(attributes_of(level_of(target), model), sort.path)

    def rank(id_: str) -> tuple[Any, ...]:
        value = comparable(next(values_at(answer[id_], sort.path), None), type_)
        return (() if value is None else value, id_.lower())

    return sorted(answer, key=rank, reverse=sort.descending)


def without_urls(answer: Any, level: Level, model: Model) -> Any:
    """An answer without the URLs of its collections, which differ with what is asked for."""
    names = {f"{plural}url" for plural in collections(level, model)}
    members = {name: value for name, value in answer.items() if name not in names}
    for plural in collections(level, model):
        if plural in members:
            inner = (*level, plural)
            members[plural] = {id_: without_urls(entity, inner, model) for id_, entity in members[plural].items()}
    return members


def without_collections(answer: Any, level: Level, model: Model) -> Any:
    """An answer as it is where nothing is inlined."""
    names = {*collections(level, model), *(f"{plural}url" for plural in collections(level, model)), "meta"}
    _, type_ = types_at(level, model)
    if type_ is not None:
        names |= {type_.singular, f"{type_.singular}base64"}
    return {name: value for name, value in answer.items() if name not in names}
