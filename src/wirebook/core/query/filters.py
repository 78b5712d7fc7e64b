"""Parse filters and test entities against them.

    filter=EXPRESSION,EXPRESSION      all must hold        expression = path [ operator [ value ] ]
    filter=... & filter=...           one must hold        operator   = "=" "!=" "<>" "<" "<=" ">" ">="

`*` as the first step of a path stands for any attribute of the entity; paths never contain ids of entities. A request
has at most `MAX_EXPRESSIONS` expressions.

An expression applies to the entities of one type, its `Level`. `wirebook.core.query.evaluation` combines them.

Spec: core/spec.md#filter-flag; core/http.md#filter-flag.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from wirebook.core.dotpath import (
    ANY_MEMBER,
    BadPath,
    DotPath,
    PathMember,
    format_dotpath,
    members_at,
    parse_dotpath,
    values_at,
)
from wirebook.core.model.compiled import Attribute, Attributes, GroupType, Model, ResourceType
from wirebook.core.model.target import RequestTarget
from wirebook.core.query.comparison import comparable, fold, read_operand
from wirebook.core.wildcards import matches_wildcard
from wirebook.problems.xregistry import Refused, refused

OPERATOR: Final = re.compile(r"!=|<>|<=|>=|=|<|>")
PATH: Final = re.compile(r"""(?:\[(?:'[^']*'|"[^"]*")\]|[^,!=<>])*+""")
"""What precedes an operator or a comma: quoted names may contain both."""
RELATIONS: Final = ("<", "<=", ">", ">=")
NOTHING: Final = "excludeall"
COMPLEX: Final = ("object", "map", "array")
ENDS: Final = ("", "url", "count")
MAX_EXPRESSIONS: Final = 256
"""Maximum number of expressions in a request: SQLite limits the depth of nested conditions to 1000."""

Level = tuple[str, ...]
"""The plural names down to an entity type: () is the Registry, ("dirs", "files", "versions") are Versions."""


@dataclass(frozen=True, slots=True)
class Expression:
    """One condition. `op` "" requires any value, "null" requires that there is none.

    Shape: `meta`: the attribute belongs to the meta; `type` is its type, if the model defines one. `known` is false for
    attributes that only responses have; such an expression never holds. `is_pattern`: `value` contains a wildcard and
    possibly escaped asterisks; otherwise it is literal. `condition` is the operator and value as sent. `attributes` are
    those of the entity if `path` may match attributes of several types (`*`, `object.*`); each value compares by its
    own type.
    """

    level: Level
    path: DotPath
    op: str
    value: str = ""
    is_pattern: bool = False
    condition: str = ""
    meta: bool = False
    type: str | None = None
    known: bool = True
    attributes: Attributes | None = field(default=None, repr=False, compare=False)

    def holds(self, entity: Mapping[str, Any]) -> bool:
        """Return whether the expression holds for an entity of its level; if `meta` is set, `entity` is the meta."""
        if not self.known:
            return False
        if self.attributes is not None:
            values = list(_typed_values(entity, self.path, self.attributes))
        else:
            values = [(value, self.type) for value in values_at(entity, self.path)]
        if self.op in ("", "null"):
            return bool(values) == (self.op == "")
        if self.op == "!=":
            return not any(self._equals(*value) for value in values)
        if self.op == "=":
            return any(self._equals(*value) for value in values)
        return any(self._relates(*value) for value in values)

    def text_below(self, depth: int) -> str:
        """Return the text of the expression relative to a collection or an entity whose level has `depth` names."""
        names = [*self.level[depth:], *(["meta"] if self.meta else []), format_dotpath(self.path)]
        return ".".join(names) + self.condition

    def _equals(self, value: Any, type_: str | None) -> bool:
        if self.is_pattern and self.value == "*":
            return True
        if self.is_pattern:
            return isinstance(value, str) and matches_wildcard(fold(value), fold(self.value))
        mine = comparable(value, type_)
        return mine is not None and mine == read_operand(self.value, value, type_)

    def _relates(self, value: Any, type_: str | None) -> bool:
        mine, other = comparable(value, type_), read_operand(self.value, value, type_)
        if mine is None or other is None:
            return False
        if self.op in ("<", ">"):
            return mine < other if self.op == "<" else mine > other
        return mine <= other if self.op == "<=" else mine >= other


Filter = tuple[tuple[Expression, ...], ...]
"""The terms of a filter. At least one term must hold; a term holds if all its expressions do."""


def _typed_values(
    value: Any, path: DotPath, definition: Attributes | Attribute | None
) -> Iterator[tuple[Any, str | None]]:
    """Yield the values at a path, each with its type in the model. As in `values_at`, null counts as absent."""
    if not path:
        if value is not None:
            yield value, definition.type if isinstance(definition, Attribute) else None
        return
    for name, inner in members_at(value, path[0]):
        yield from _typed_values(inner, path[1:], _definition_in(definition, name))


def _definition_in(definition: Attributes | Attribute | None, name: str | int) -> Attribute | None:
    """Return the definition of a member, an entry or an item, given the definition of the value that contains it."""
    if isinstance(definition, Attribute):
        if definition.type != "object":
            return definition.item
        definition = definition.attributes
    return None if definition is None else find_definition(definition, str(name))


def find_definition(attributes: Attributes, name: str) -> Attribute | None:
    """Return the definition of an attribute by name.

    If it is not defined directly, return its definition in `ifvalues`, or None if several there differ in type.
    Without any, return the definition of ``*``.
    """
    if name in attributes:
        return attributes[name]
    brought = list(_conditional_definitions(attributes, name))
    if brought:
        return brought[0] if len({attribute.type for attribute in brought}) == 1 else None
    return attributes.get("*")


def _conditional_definitions(attributes: Attributes, name: str) -> Iterator[Attribute]:
    for attribute in attributes.branching:
        for siblings in attribute.ifvalues.values():
            if name in siblings:
                yield siblings[name]
            yield from _conditional_definitions(siblings, name)


# -- parsing ------------------------------------------------------------------------------------------------------


def parse_filter(parameters: Sequence[str], target: RequestTarget, model: Model) -> Filter | None:
    """Return the filter of a request: None if there is no filter, () if it excludes everything.

    Raises: bad_filter
    """
    terms = [_texts(parameter) for parameter in parameters if parameter]
    count = sum(map(len, terms))
    if count > MAX_EXPRESSIONS:
        why = f"the request has {count} expressions; at most {MAX_EXPRESSIONS} are allowed"
        raise _bad_filter(target, parameters[0], why)
    for parameter, term in zip(filter(None, parameters), terms, strict=True):
        if "" in term:
            raise _bad_filter(target, parameter, "an expression is missing before or after a comma")
    texts = [text for term in terms for text in term]
    if NOTHING in texts:
        if len(texts) > 1:
            raise _bad_filter(
                target, NOTHING, "it excludes everything, so it cannot be combined with other expressions"
            )
        return ()
    return tuple(tuple(_expression(text, target, model) for text in term) for term in terms) or None


def _texts(parameter: str) -> list[str]:
    """Return the texts of the expressions, which are separated by commas."""
    texts, start = list[str](), 0
    while (end := parameter.find(",", _path_end(parameter, start))) >= 0:
        texts.append(parameter[start:end].lstrip(" "))
        start = end + 1
    return [*texts, parameter[start:].lstrip(" ")]


def _path_end(text: str, start: int = 0) -> int:
    """Return where the path that begins at `start` ends."""
    match = PATH.match(text, start)
    return match.end() if match else start


def _bad_filter(target: RequestTarget, text: str, why: str) -> Refused:
    return refused("bad_filter", target.path, value=text if len(text) <= 200 else f"{text[:197]}...", error_detail=why)


def _expression(text: str, target: RequestTarget, model: Model) -> Expression:
    match = OPERATOR.search(text, _path_end(text))
    name = text[: match.start()] if match else text
    op = match[0].replace("<>", "!=") if match else ""
    value = text[match.end() :] if match else ""
    try:
        path = parse_dotpath(name)
    except BadPath as error:
        raise _bad_filter(target, text, str(error)) from None
    is_pattern = "*" in value.replace("\\*", "")
    if op in RELATIONS and (value == "null" or is_pattern):
        raise _bad_filter(target, text, f"'{op}' cannot be used with null or a wildcard")
    if value == "null" and op in ("=", "!="):
        op, value = ("null" if op == "=" else ""), ""
    literal = value if is_pattern else value.replace("\\*", "*")
    expression = _at_its_level(Expression((), path, op, literal, is_pattern, text[len(name) :]), target, model)
    if op not in ("", "null") and expression.type in COMPLEX:
        raise _bad_filter(target, text, f"'{name}' is of type {expression.type}, which has no value to compare with")
    return expression


def level_of(target: RequestTarget) -> Level:
    """Return the level to which filter paths are relative."""
    names = [target.group_type.plural] if target.group_type else []
    names += [target.type.plural] if target.type else []
    return tuple(names) + (("versions",) if target.kind in ("versions", "version") else ())


def _at_its_level(expression: Expression, target: RequestTarget, model: Model) -> Expression:
    """Return the expression with the leading collection names moved from its path to its level."""
    level, path, meta = level_of(target), expression.path, target.kind == "meta"
    path = folded(path)
    while len(path) > 1 and isinstance(path[0], PathMember) and path[0].name in collections(level, model) and not meta:
        level, path = (*level, path[0].name), folded(path[1:])
    if len(level) == 2 and not meta and len(path) > 1 and path[0] == PathMember("meta"):
        meta, path = True, folded(path[1:])
    name = path[0].name if isinstance(path[0], PathMember) else ""
    known = name not in response_only_members(level, model, meta=meta)
    attributes = attributes_of(level, model, meta=meta)
    if known:
        type_ = type_at(attributes, path)
    else:  # the type map makes a comparison with nested collections or the meta an error
        is_nested = len(path) == 1 and (name in collections(level, model) or name == "meta")
        type_ = "map" if is_nested else None
    several = attributes if type_ is None and ANY_MEMBER in path else None
    return replace(expression, level=level, path=path, meta=meta, known=known, type=type_, attributes=several)


def collections(level: Level, model: Model) -> Iterable[str]:
    """Return the plural names of the collections that entities of a level contain."""
    if not level:
        return model.groups
    if len(level) == 1:
        return model.groups[level[0]].resources
    return ("versions",) if len(level) == 2 else ()


def types_at(level: Level, model: Model) -> tuple[GroupType | None, ResourceType | None]:
    """Return the Group type and the Resource type of a level."""
    group = model.groups[level[0]] if level else None
    return group, group.resources[level[1]] if group and len(level) > 1 else None


def attributes_of(level: Level, model: Model, *, meta: bool = False) -> Attributes:
    """Return the attributes of the entities of a level, or of their meta."""
    group, resource = types_at(level, model)
    if resource:
        return resource.metaattributes if meta else resource.attributes
    return group.attributes if group else model.attributes


def may_have(attributes: Attributes, name: str) -> bool:
    """Return whether an entity with these attributes may have an attribute `name`, possibly defined by `ifvalues`."""
    brought = (siblings for attribute in attributes.values() for siblings in attribute.ifvalues.values())
    return name in attributes or "*" in attributes or any(may_have(siblings, name) for siblings in brought)


def response_only_members(level: Level, model: Model, *, meta: bool) -> set[str]:
    """Return the names of members that exist only in responses; filters cannot use them."""
    if meta:
        return {"self", "shortself", "defaultversionurl"}
    _, resource = types_at(level, model)
    names = {"self", "shortself"} | {f"{plural}{end}" for plural in collections(level, model) for end in ENDS}
    if not level:
        return names | {"specversion", "model", "modelsource", "capabilities"}
    if len(level) == 2:
        names |= {"meta", "metaurl"}
    if resource and resource.hasdocument:
        names |= {resource.singular, f"{resource.singular}base64"}
    return names


def folded(path: DotPath) -> DotPath:
    """Return the path with its first name in lower case, as attribute names are; requests may use any case."""
    first = path[0]
    return (PathMember(first.name.lower()), *path[1:]) if isinstance(first, PathMember) else path


def type_at(attributes: Attributes, path: DotPath) -> str | None:
    """Return the type of the attribute at a path through objects, maps and arrays."""
    if not isinstance(path[0], PathMember):
        return None
    attribute = find_definition(attributes, path[0].name)
    for i in range(1, len(path)):
        if attribute is None:
            return None
        if attribute.type == "object":
            return type_at(attribute.attributes, path[i:])
        attribute = attribute.item
    return attribute.type if attribute else None
