"""Translate filter expressions into SQL conditions on columns.

A condition may select more rows than its expression matches. Unless it is `exact`, `wirebook.core.query.filters` tests
the selected rows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Double,
    LargeBinary,
    and_,
    cast,
    false,
    func,
    literal,
    or_,
    select,
    true,
)

from wirebook.core.dotpath import ANY_MEMBER, PathMember
from wirebook.core.query.comparison import NUMBER, comparable, fold, read_operand
from wirebook.core.query.filters import Expression
from wirebook.storage.columns import EntityColumns, Kind
from wirebook.storage.keys import LONGEST
from wirebook.storage.tables import LABELS

PLAIN: Final = re.compile(r"[ !#-$&-\[\]-~]+")
"""Runs of characters that JSON does not escape and that are not special in LIKE, except for the underscore."""

OTHERS: Final = frozenset({"integer", "uinteger", "decimal", "boolean", "timestamp", "any"})
"""Types with values that can be equal although their texts differ."""

LARGEST: Final = 2**63
"""Integers in a column are below this limit."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A SQL condition that is true for all rows for which an expression holds. `exact`: and for no other rows."""

    sql: ColumnElement[bool] = field(default_factory=true)
    exact: bool = False


ANYTHING: Final = Condition()


def condition(expression: Expression, entity_columns: EntityColumns, dialect: str) -> Condition:
    """Return the condition for an expression on these columns."""
    if not expression.known:
        return Condition(false(), exact=True)
    first, *rest = expression.path
    name = first.name if isinstance(first, PathMember) else ""
    if not rest and name in entity_columns.keys and entity_columns.keys[name][0] == expression.type:
        return _key_condition(expression, *entity_columns.keys[name])
    if not rest and name == "xid":
        return _xid_condition(expression, entity_columns)
    if (
        name == "labels"
        and len(rest) == 1
        and entity_columns.labels
        and (rest[0] is ANY_MEMBER or isinstance(rest[0], PathMember))
    ):
        return _label_condition(expression, *entity_columns.labels)
    if not name:
        # Ids are scalars, so nested members are always in one of the texts.
        texts = [_text_condition(expression, text, dialect) for text, _ in entity_columns.texts] if rest else []
        return Condition(or_(*texts)) if texts else ANYTHING
    return (
        ANYTHING
        if name in entity_columns.ids
        else Condition(_text_condition(expression, entity_columns.text_of(name), dialect))
    )


# -- columns ------------------------------------------------------------------------------------------------------


def _key_condition(expression: Expression, kind: Kind, column: ColumnElement[Any]) -> Condition:
    if expression.op == "" or (expression.op == "=" and expression.is_pattern and expression.value == "*"):
        return Condition(column.is_not(None), exact=True)
    if expression.op == "null":
        return Condition(column.is_(None), exact=True)
    if expression.is_pattern:
        return _pattern_condition(expression, kind, column)
    if kind == "uinteger":
        return _number_condition(expression, column)
    operand = _operand(expression)
    return ANYTHING if operand is None else Condition(_comparison(column, expression.op, operand), exact=True)


def _operand(expression: Expression) -> str | None:
    """Return the operand as key columns store it; None if stored keys may differ from their values (see `text_key`)."""
    operand = comparable(expression.value, expression.type)
    assert operand is not None
    return operand[1] if len(operand[1]) < LONGEST and min(operand[1], default=" ") > "\1" else None


def _comparison(column: ColumnElement[Any], op: str, operand: Any) -> ColumnElement[bool]:
    if op == "!=":
        return column.is_distinct_from(operand)
    related: ColumnElement[bool] = column.op("=" if op == "=" else op, is_comparison=True)(operand)
    return related


def _number_condition(expression: Expression, column: ColumnElement[Any]) -> Condition:
    number = read_operand(expression.value, 0, expression.type)
    if number is None:
        return Condition(true() if expression.op == "!=" else false(), exact=True)
    if abs(number[1]) >= LARGEST:
        return ANYTHING
    operand = literal(number[1], BigInteger() if isinstance(number[1], int) else Double())
    return Condition(_comparison(column, expression.op, operand), exact=True)


def _pattern_condition(expression: Expression, kind: Kind, column: ColumnElement[Any]) -> Condition:
    """Return the condition for a value with a wildcard: the key starts with the text before the wildcard."""
    prefix = re.split(r"\\?\*", fold(expression.value), maxsplit=1)[0]
    prefix = prefix.upper()[:19] if kind == "timestamp" else prefix[: LONGEST - 1]
    if expression.op != "=" or kind == "uinteger" or not prefix or "\0" in prefix:
        return ANYTHING
    return Condition(and_(column >= prefix, column < _next(prefix)))


def _next(prefix: str) -> str:
    """Return the smallest text that is greater than all texts with a prefix."""
    head, last = prefix[:-1], ord(prefix[-1])
    if last == 0x10FFFF:
        return _next(head) if head else prefix * 2
    return head + chr(0xE000 if last == 0xD7FF else last + 1)


def _xid_condition(expression: Expression, entity_columns: EntityColumns) -> Condition:
    """Return the condition for an xid: the columns have the ids in it."""
    if expression.op != "=" or expression.is_pattern:
        return ANYTHING
    segments = fold(expression.value).split("/")
    if max(entity_columns.xid, default=0) >= len(segments) or "\0" in expression.value:
        return Condition(false())
    return Condition(and_(true(), *(column == segments[index] for index, column in entity_columns.xid.items())))


def _label_condition(expression: Expression, kind: int, owner: ColumnElement[int]) -> Condition:
    step = expression.path[1]
    where = [LABELS.c.kind == kind]
    if isinstance(step, PathMember):
        if "\0" in step.name:
            return ANYTHING
        where.append(LABELS.c.name == step.name)
    is_negative = expression.op in ("null", "!=")
    if expression.op not in ("", "null") and not (expression.is_pattern and expression.value == "*"):
        if expression.is_pattern:
            pattern = _pattern_condition(expression, "string", LABELS.c.value) if expression.op == "=" else ANYTHING
            return (
                Condition(owner.in_(select(LABELS.c.owner).where(*where, pattern.sql))) if not is_negative else pattern
            )
        operand = _operand(expression)
        if operand is None:
            return ANYTHING
        where.append(_comparison(LABELS.c.value, "=" if is_negative else expression.op, operand))
    owners = select(LABELS.c.owner).where(*where)
    return Condition(owner.not_in(owners) if is_negative else owner.in_(owners), exact=True)


# -- texts --------------------------------------------------------------------------------------------------------


def _text_condition(expression: Expression, text: ColumnElement[str], dialect: str) -> ColumnElement[bool]:
    """Return a condition on the text of members: it contains a part of the value or else the last name of the path."""
    if expression.op in ("!=", "null"):
        return true()
    names = [step.name for step in expression.path if isinstance(step, PathMember)]
    # Plain names are not escaped in JSON. Databases limit the length of a pattern.
    plain = [name for name in names[-1:] if len(name) <= LONGEST and PLAIN.fullmatch(name)]
    hints: list[ColumnElement[bool]] = [text.like(f'%"{name}":%') for name in plain]
    required_text = _required_text(expression)
    if required_text:
        hints = [_contains(text, required_text, dialect)]
    return and_(true(), *hints)


def _required_text(expression: Expression) -> str:
    """Return the longest part of the value that a matching text must contain, or ""."""
    if expression.op != "=" or expression.type in OTHERS or expression.attributes is not None:
        return ""
    if expression.type is None and NUMBER.fullmatch(expression.value):
        return ""
    value = re.sub(r"\\?\*", "\0", expression.value) if expression.is_pattern else expression.value
    return max(PLAIN.findall(fold(value)), key=len, default="")[:LONGEST]


def _contains(text: ColumnElement[str], required_text: str, dialect: str) -> ColumnElement[bool]:
    """Return the condition that a text contains a part, ignoring case.

    Texts with non-ASCII characters always pass, because these may fold to ASCII.
    """
    if dialect == "sqlite":
        return or_(text.like(f"%{required_text}%"), func.length(text) != func.length(cast(text, LargeBinary)))
    return or_(func.lower(text).like(f"%{required_text}%"), func.length(text) != func.octet_length(text))
