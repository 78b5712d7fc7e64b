"""Data types: check JSON values and convert them to stored form.

`check_value` and `check_members` return the stored values (timestamps in UTC, whole numbers as integers) or raise
`InvalidValue` with the faults and their paths. A check stops at `MAX_FAULTS` faults. Lint and the registry service use
the same checks.

Spec: core/spec.md#data-types; core/model.md#registry-model.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final, NoReturn

from wirebook.core.model.attributes import ATTRIBUTE_NAME, ATTRIBUTE_NAME_IN_WORDS, MAX_BYTES
from wirebook.core.model.attributes import KEY_NAME as MAP_KEY
from wirebook.core.model.compiled import Attribute, Attributes, Model
from wirebook.core.model.faults import MAX_FAULTS, InvalidValue, ValueFault, add_faults
from wirebook.core.names import is_identifier
from wirebook.core.timestamps import TIMESTAMP_IN_WORDS, normal_timestamp

URI_CHARACTERS: Final = re.compile(r"(?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2}|[^\x00-\x7f])*\Z")
SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
_VARIABLE: Final = r"(?:\w|%[0-9A-Fa-f]{2})+(?:\.(?:\w|%[0-9A-Fa-f]{2})+)*(?::[1-9]\d{0,3}|\*)?"
EXPRESSION: Final = re.compile(rf"\{{[+#./;?&]?{_VARIABLE}(?:,{_VARIABLE})*\}}", re.ASCII)
SHORT: Final = MAX_BYTES // 4 - 256
"""Strings of up to this many characters fit into `MAX_BYTES` in UTF-8, together with the name of an attribute."""

MAP_KEY_IN_WORDS: Final = "1 to 63 of a-z 0-9 : - _ . with a letter or a digit first"
MAX_SHORT: Final = 10**300
"""Integers up to this absolute value are far below `MAX_BYTES`."""


Types = Callable[[str, str | None], bool]
"""Returns whether the model has the named Group type and, if the second name is not None, that Resource type in it."""


def types_of(model: Model) -> Types:
    """Return the `Types` of a model."""

    def exists(groups: str, resources: str | None) -> bool:
        group = model.groups.get(groups)
        return group is not None and (resources is None or resources in group.resources)

    return exists


def check_value(attribute: Attribute, value: Any, name: str, types: Types) -> Any:
    """Return `value` in stored form. `name` is the attribute's name or the map key. Raises: InvalidValue"""
    try:
        return _check(attribute, value, name, types)
    except InvalidValue as error:
        raise InvalidValue(*error.inside(name)) from None


def _check(attribute: Attribute, value: Any, name: str, types: Types) -> Any:
    """Like `check_value`, but the paths of faults are relative to the value."""
    if attribute.type in _SCALAR:
        return _check_scalar(attribute, value, name, types)
    return _COMPLEX[attribute.type](attribute, value, name, types)


# -- scalars ------------------------------------------------------------------------------------------------------


def _check_scalar(attribute: Attribute, value: Any, name: str, types: Types) -> Any:
    value = _SCALAR[attribute.type](value)
    if len(value) > SHORT if isinstance(value, str) else isinstance(value, int) and abs(value) > MAX_SHORT:
        check_size(value, name if attribute.name else "")
    if attribute.target or attribute.type in ("xid", "xidtype"):
        _check_reference(attribute, value, name, types)
    if attribute.enum and attribute.strict:
        is_listed = value.casefold() in attribute.texts if isinstance(value, str) else is_one_of(value, attribute.enum)
        if not is_listed:
            _reject_choice(value, attribute.enum)
    return value


def _reject_choice(value: Any, enum: tuple[Any, ...]) -> NoReturn:
    why = f"{preview(value)} is not one of: {', '.join(map(preview, enum))}"
    raise InvalidValue(ValueFault((), "enum", why, value, enum))


def _check_reference(attribute: Attribute, value: Any, name: str, types: Types) -> None:
    if attribute.type == "xidtype" and not is_xidtype(value, types):
        _reject_reference(value, "the path of a type in the model")
    if attribute.type == "xid" and not fits_target(value, attribute.target, types):
        _reject_reference(value, f"the xid of {_target_text(attribute.target)}")
    if attribute.target and attribute.type in ("uri", "url") and value.startswith("/"):
        _check_path(attribute.target, value, name, types)


def _check_path(target: str, value: str, name: str, types: Types) -> None:
    """Check a reference within the registry.

    Reading: in the published endpoint model, references in `messagegroups` have messages as their target; an attribute
    named like a Group type may also refer to its Groups.
    """
    group = target.split("/")[1]
    if not fits_target(value, target, types) and not (name == group and fits_target(value, f"/{group}", types)):
        _reject_reference(value, f"the xid of {_target_text(target)}")


def _reject_reference(value: str, allowed: str) -> NoReturn:
    raise InvalidValue(ValueFault((), "reference", f"'{value}' is not {allowed}", value, allowed))


def check_size(value: str | int | float, name: str) -> None:
    """Check the size of a scalar together with the attribute's name; pass "" for map entries and array items.

    Raises: InvalidValue
    """
    size = len(str(value).encode("utf-8", "surrogatepass")) + len(name)
    if size > MAX_BYTES:
        why = f"{'name and value have' if name else 'it has'} {size} bytes; at most {MAX_BYTES} are allowed"
        raise InvalidValue(ValueFault((), "size", why, size, MAX_BYTES))


def is_one_of(value: Any, allowed: tuple[Any, ...]) -> bool:
    """Return whether `value` is one of the allowed values; strings compare case-insensitively."""
    if isinstance(value, str):
        folded = value.casefold()
        return any(isinstance(candidate, str) and candidate.casefold() == folded for candidate in allowed)
    return any(type(candidate) is type(value) and candidate == value for candidate in allowed) or (
        not isinstance(value, bool)
        and any(not isinstance(candidate, bool) and candidate == value for candidate in allowed)
    )


def wrong_type(value: Any, allowed: str, note: str = "") -> InvalidValue:
    """Return the error for a value of the wrong type. `allowed` describes the type; `note` is appended."""
    return InvalidValue(ValueFault((), "type", f"{preview(value)} is not {allowed}{note}", value, allowed))


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise wrong_type(value, "true or false")
    return value


def _integer(value: Any) -> int:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise wrong_type(value, "an integer")
    return value


def _uinteger(value: Any) -> int:
    number = int(value) if isinstance(value, float) and value.is_integer() else value
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise wrong_type(value, "an unsigned integer")
    return number


def _decimal(value: Any) -> int | float:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise wrong_type(value, "a number")
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value


def _string(value: Any, allowed: str = "a string") -> str:
    if not isinstance(value, str):
        raise wrong_type(value, allowed)
    return value


def _timestamp(value: Any) -> str:
    text = normal_timestamp(_string(value, TIMESTAMP_IN_WORDS))
    if text is None:
        raise wrong_type(value, TIMESTAMP_IN_WORDS, "; a time without an offset is in UTC")
    return text


def _reference(value: Any, *, absolute: bool | None, url: bool) -> str:
    kind = "URL" if url else "URI"
    text = _string(value, f"a {kind}")
    if not text or not URI_CHARACTERS.match(text):
        raise wrong_type(value, f"a {kind}")
    is_absolute = SCHEME.match(text) is not None
    if absolute is not None and is_absolute != absolute:
        raise wrong_type(value, f"{'an absolute' if absolute else 'a relative'} {kind}")
    return text


def _uritemplate(value: Any) -> str:
    text = _string(value)
    literal = EXPRESSION.sub("", text)
    if "{" in literal or "}" in literal:
        raise wrong_type(value, "a URI template", ": its braces do not hold an expression of RFC 6570")
    return text


def _xid_path(value: Any) -> str:
    text = _string(value)
    if not text.startswith("/"):
        raise InvalidValue(
            ValueFault((), "type", f"{preview(value)} does not start with '/'", value, "a path that starts with '/'")
        )
    return text


def _of(*, absolute: bool | None, url: bool) -> Callable[[Any], str]:
    return lambda value: _reference(value, absolute=absolute, url=url)


_SCALAR: Final[Mapping[str, Callable[[Any], Any]]] = {
    "boolean": _boolean,
    "decimal": _decimal,
    "integer": _integer,
    "string": _string,
    "timestamp": _timestamp,
    "uinteger": _uinteger,
    "uri": _of(absolute=None, url=False),
    "uriabsolute": _of(absolute=True, url=False),
    "urirelative": _of(absolute=False, url=False),
    "uritemplate": _uritemplate,
    "url": _of(absolute=None, url=True),
    "urlabsolute": _of(absolute=True, url=True),
    "urlrelative": _of(absolute=False, url=True),
    "xid": _xid_path,
    "xidtype": _xid_path,
}


# -- references to entities and types -----------------------------------------------------------------------------


def is_xidtype(text: str, types: Types) -> bool:
    """Return whether `text` is ``/``, or the path of a Group type, a Resource type or a Resource type's Versions."""
    parts = text[1:].split("/")
    if text == "/":
        return True
    if len(parts) == 3 and parts[2] == "versions":
        return types(parts[0], parts[1])
    return len(parts) <= 2 and types(parts[0], parts[1] if len(parts) == 2 else None)


def entity_type(text: str, types: Types) -> str | None:
    """Return the type of the entity that an xid identifies, in the syntax of targets; None if the xid is invalid.

    The type of the Registry is ``/``, that of a meta ``/GROUPS/RESOURCES/meta``.
    """
    if text == "/":
        return "/"
    parts = text[1:].split("/")
    named, ids = parts[0::2], parts[1::2]
    if len(parts) not in (2, 4, 5, 6) or not text.startswith("/") or not all(map(is_identifier, ids)):
        return None
    if not types(named[0], named[1] if len(named) > 1 else None):
        return None
    if len(parts) == 5:
        return f"/{named[0]}/{named[1]}/meta" if named[2] == "meta" else None
    if len(parts) == 6 and named[2] != "versions":
        return None
    return "/" + "/".join(named)


def fits_target(text: str, target: str, types: Types) -> bool:
    """Return whether `text` is the xid of an entity that `target` allows; without a target, of any entity."""
    named_type = entity_type(text, types)
    if named_type is None or not target:
        return named_type is not None
    return named_type in (target, target.replace("[/versions]", ""), target.replace("[/versions]", "/versions"))


def _target_text(target: str) -> str:
    return f"an entity of {target}" if target else "an entity of a type in the model"


# -- arrays, maps, objects ----------------------------------------------------------------------------------------


def _array(attribute: Attribute, value: Any, name: str, types: Types) -> list[Any]:
    if not isinstance(value, list):
        raise wrong_type(value, "an array")
    checked: list[Any] = []
    faults: list[ValueFault] = []
    for i, item in enumerate(value):
        try:
            checked.append(_item(attribute, item, name, types))
        except InvalidValue as error:
            add_faults(faults, i, error)
    if faults:
        raise InvalidValue(*faults)
    return checked


def _item(owner: Attribute, value: Any, name: str, types: Types) -> Any:
    assert owner.item is not None
    if value is None:
        raise InvalidValue(
            ValueFault((), "type", "null is not allowed as an item of an array", None, "any value except null")
        )
    checked = _check(owner.item, value, name, types)
    if owner.enum and owner.strict and not is_one_of(checked, owner.enum):
        _reject_choice(value, owner.enum)
    return checked


def _map(attribute: Attribute, value: Any, _: str, types: Types) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise wrong_type(value, "a map")
    assert attribute.item is not None
    checked, item = {}, attribute.item
    faults: list[ValueFault] = []
    for key in sorted(value):
        if not MAP_KEY.match(key):
            add_faults(faults, key, _invalid_key(key))
        entry = value[key]
        if type(entry) is item.plain and (type(entry) is bool or len(entry) <= SHORT):
            checked[key] = entry
        elif entry is not None:
            try:
                checked[key] = _check(item, entry, key, types)
            except InvalidValue as error:
                add_faults(faults, key, error)
    if faults:
        raise InvalidValue(*faults)
    return checked


def _invalid_key(key: str) -> InvalidValue:
    why = f"{preview(key)} is not a valid map key: {MAP_KEY_IN_WORDS}"
    return InvalidValue(ValueFault((), "key", why, key, MAP_KEY_IN_WORDS))


def _object(attribute: Attribute, value: Any, _: str, types: Types) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise wrong_type(value, "an object")
    return _ObjectMembers(attribute.attributes, value, types).check(MAP_KEY if attribute.extended else ATTRIBUTE_NAME)


def _any(_: Attribute, value: Any, __: str, ___: Types) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidValue(ValueFault((), "value", "the number is too large", value, "a finite number"))
    return value


_COMPLEX: Final[Mapping[str, Callable[[Attribute, Any, str, Types], Any]]] = {
    "array": _array,
    "map": _map,
    "object": _object,
    "any": _any,
}


# -- the members of an object or an entity ------------------------------------------------------------------------


def check_members(attributes: Attributes, values: Mapping[str, Any], types: Types) -> dict[str, Any]:
    """Return the attributes of an entity in stored form: checked, with defaults, in order. A null counts as absent.

    Raises: InvalidValue
    """
    return _ObjectMembers(attributes, values, types).check(ATTRIBUTE_NAME, is_entity=True)


class _ObjectMembers:
    """Checks the members of one object or entity.

    `layers` are the attributes known so far: first the defined ones, then those that values define by `ifvalues`.
    `checked` contains invalid values unchanged until `check` raises the faults.
    """

    __slots__ = ("_faults", "_types", "_values", "checked", "layers")

    def __init__(self, attributes: Attributes, values: Mapping[str, Any], types: Types) -> None:
        self.layers, self.checked = [attributes], dict[str, Any]()
        self._values, self._types = values, types
        self._faults: list[ValueFault] = []

    def check(self, names: re.Pattern[str], *, is_entity: bool = False) -> dict[str, Any]:
        """Return the members in stored form. Names without a definition of their own must match `names`.

        Raises: InvalidValue
        """
        attributes = self.layers[0]
        unknown = self._add(attributes, self._values)
        self._fill(attributes)
        if attributes.branching:
            self._add_siblings([*attributes.branching])
        missing = [name for layer in self.layers for name in layer.required if name not in self.checked]
        if missing:
            self._faults += [ValueFault((name,), "missing", "it is required") for name in missing]
        if unknown:
            self._add_undeclared(unknown, names, is_entity)
        if self._faults:
            raise InvalidValue(*self._faults)
        return in_order(chain.from_iterable(self.layers), self.checked)

    def _fill(self, attributes: Attributes) -> None:
        """Fill in defaults."""
        for name, default in attributes.defaults.items():
            self.checked.setdefault(name, default)

    def _add(self, attributes: Attributes, names: Iterable[str]) -> list[str]:
        """Check the members that are neither null nor read-only, and return the names that are not defined."""
        values, checked, unknown = self._values, self.checked, []
        for name in names:
            attribute, value = attributes.get(name), values[name]
            if attribute is None or name == "*":
                unknown.append(name)
            elif type(value) is attribute.plain and (type(value) is bool or len(value) <= SHORT):
                checked[name] = value
            elif value is not None and not attribute.readonly:
                checked[name] = value
                try:
                    checked[name] = _check(attribute, value, name, self._types)
                except InvalidValue as error:
                    add_faults(self._faults, name, error)
        return unknown

    def _add_siblings(self, waiting: list[Attribute]) -> None:
        """Add and check the attributes that values define by `ifvalues`, recursively."""
        for attribute in waiting:
            siblings = attribute.ifvalues.get(text_of(self.checked.get(attribute.name)).casefold())
            if not siblings:
                continue
            if twice := [name for layer in self.layers for name in siblings if name in layer]:
                why = f"it is defined twice: by '{attribute.name}' and by another attribute"
                raise InvalidValue(*self._faults, ValueFault((twice[0],), "twice", why))
            self.layers.append(siblings)
            self._add(siblings, [name for name in siblings if name in self._values])
            self._fill(siblings)
            waiting += siblings.branching

    def _add_undeclared(self, unknown: list[str], pattern: re.Pattern[str], is_entity: bool) -> None:
        """Check members without a definition of their own against the definition of ``*``, if there is one."""
        names = sorted(name for name in unknown if name == "*" or not self._is_conditional(name))
        if self._faults or any(self._values[name] is None for name in names):
            undecided = self._undecided_names(names)
            names = [name for name in names if name not in undecided]
        wildcard = next((layer["*"] for layer in self.layers if "*" in layer), None)
        # Reading: in an object without `*`, an invalid name is an unknown attribute like any other.
        if wildcard is not None or is_entity:
            invalid = [name for name in names if not pattern.match(name)]
            if invalid:
                self._faults += map(_invalid_name, invalid[:MAX_FAULTS])
                names = [name for name in names if pattern.match(name)]
        if names and wildcard is None:
            known = [name for layer in self.layers for name, attribute in layer.items() if not attribute.readonly]
            why = f"Unknown: {', '.join(names)}; allowed: {', '.join(known) or 'none'}"
            self._faults.append(ValueFault((names[0],), "unknown", why, names[0], known))
        for name in names:
            if wildcard is not None and self._values[name] is not None:
                try:
                    self.checked[name] = _check(wildcard, self._values[name], name, self._types)
                except InvalidValue as error:
                    add_faults(self._faults, name, error)

    def _is_conditional(self, name: str) -> bool:
        """Return whether an attribute of that name is defined by another attribute's value."""
        return len(self.layers) > 1 and any(name in layer for layer in self.layers)

    def _undecided_names(self, unknown: list[str]) -> set[str]:
        """Return the unknown names that are not reported as faults.

        A name is undecided if a corrected value of an invalid attribute may define it, or if it is null and another
        value of an attribute, such as the former one, may define it.
        """
        branching = [attribute for layer in self.layers for attribute in layer.branching]
        invalid = {fault.path[0] for fault in self._faults}
        undecided = set(_conditional_names(attribute for attribute in branching if attribute.name in invalid))
        nulls = {name for name in unknown if self._values[name] is None}
        return undecided | (nulls & set(_conditional_names(branching)) if nulls else nulls)


def _invalid_name(name: str) -> ValueFault:
    return ValueFault((name,), "name", f"{preview(name)} is not a valid attribute name", name, ATTRIBUTE_NAME_IN_WORDS)


def _conditional_names(branching: Iterable[Attribute]) -> Iterator[str]:
    """Yield the names of all attributes that `ifvalues` may define."""
    for attribute in branching:
        for siblings in attribute.ifvalues.values():
            yield from siblings
            yield from _conditional_names(siblings.branching)


def in_order(names: Iterable[str], members: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members in the order of `names`, then the others by name."""
    named = {name: members[name] for name in names if name in members}
    if len(named) == len(members):
        return named
    return named | {name: members[name] for name in sorted(members.keys() - named.keys())}


def text_of(value: Any) -> str:
    """Return the text of a scalar as in keys of `ifvalues` and in headers; "" for None."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def preview(value: Any) -> str:
    """Return a short description of a value for messages."""
    text = f"'{value}'" if isinstance(value, str) else text_of(value) if not isinstance(value, (dict, list)) else ""
    if not text:
        text = "an object" if isinstance(value, Mapping) else "an array" if isinstance(value, list) else "null"
    return text if len(text) <= 80 else f"{text[:76]}...'"
