"""Update the attributes of an entity: those that the client sets and those that the server sets.

`update` applies PUT, PATCH and POST to one entity. `check_id` and `check_epoch` check ids and epochs separately.

Spec: core/spec.md#attributes-and-extensions; core/http.md#creating-or-updating-entities.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from wirebook.core.entities.state import Entity, Members
from wirebook.core.entities.versions import instant_key
from wirebook.core.model.attributes import RESERVED_VERSIONS
from wirebook.core.model.compiled import Attribute, Attributes, GroupConstraint, GroupType, Model, ResourceType
from wirebook.core.model.constraints import fill_defaults
from wirebook.core.model.datatypes import Types, check_members, check_value, in_order, preview
from wirebook.core.model.faults import InvalidValue, ValueFault
from wirebook.core.names import IDENTIFIER_IN_WORDS, is_identifier
from wirebook.core.timestamps import normal_timestamp
from wirebook.problems.xregistry import Refused, refused

SERVER: Final = frozenset({"self", "shortself", "xid", "epoch"})
SHOWN: Final = frozenset({"self", "shortself", "xid"})
VALIDATED: Final = (
    "formatvalidated",
    "formatvalidatedreason",
    "compatibilityvalidated",
    "compatibilityvalidatedreason",
)
DEFAULT: Final = ("defaultversionid", "defaultversionsticky")
RESOURCE_LEVEL: Final = frozenset({"metaurl", "meta", "versionsurl", "versionscount", "versions"})


@dataclass(frozen=True)
class AttributeSet:
    """The attributes of one kind of entity, by whether the client or the server sets them.

    `managed` are attributes of the model that clients do not set by `update`. Of these, `ids` exist from the creation
    of the entity and never change, and `unstored` appear in responses only. `tail` attributes are last; `not_empty` are
    strings that must not be empty.
    """

    attributes: Attributes
    managed: frozenset[str]
    tail: tuple[str, ...] = ()
    not_empty: tuple[str, ...] = ("name",)
    ids: tuple[str, ...] = ()
    unstored: frozenset[str] = SHOWN

    @cached_property
    def editable(self) -> Attributes:
        """The attributes that a client may send."""
        return Attributes({name: attribute for name, attribute in self.attributes.items() if name not in self.managed})

    @cached_property
    def preserved(self) -> frozenset[str]:
        """Managed attributes that are kept when a client replaces the entity.

        Stored members with the name of an `unstored` attribute are dropped: they can only be left from an earlier
        model, in which clients could set them.
        """
        return self.managed - self.unstored

    @cached_property
    def locked(self) -> frozenset[str]:
        """Editable attributes that are read-only for clients."""
        return frozenset(name for name, attribute in self.editable.items() if attribute.readonly)

    @cached_property
    def enumerated_ids(self) -> tuple[Attribute, ...]:
        """Managed attributes that the model restricts to an enum, such as ids."""
        return tuple(
            attribute for name, attribute in self.attributes.items() if name in self.managed and attribute.enum
        )

    @cached_property
    def branching_ids(self) -> Attributes:
        """Ids with `ifvalues`, whose value may define further attributes."""
        return Attributes({name: self.attributes[name] for name in self.ids if self.attributes[name].ifvalues})

    def check_enumerated_ids(self, members: Members, types: Types) -> None:
        """Check managed members, such as ids, against the enums of the model. Raises: InvalidValue"""
        for attribute in self.enumerated_ids:
            if attribute.name in members:
                check_value(attribute, members[attribute.name], attribute.name, types)

    def check(self, values: Members, stored: Members, types: Types) -> Members:
        """Return the editable attributes in stored form; locked ones keep their stored value. Raises: InvalidValue"""
        self.check_enumerated_ids(stored, types)
        preserved = {name: stored[name] for name in (*self.locked, *self.branching_ids) if name in stored}
        if not preserved:
            return check_members(self.editable, values, types)
        unlocked = {name: replace(self.attributes[name], readonly=False) for name in preserved}
        return check_members(Attributes(self.editable | unlocked), {**values, **preserved}, types)

    def in_order(self, members: Members) -> Members:
        """Return the members in display order: those defined by the model, other ones, then `tail`."""
        last = {name: members.pop(name) for name in self.tail if name in members}
        return in_order(self.attributes, members) | last


def registry_attributes(model: Model) -> AttributeSet:
    """Return the attributes of the Registry."""
    collections = {f"{plural}{end}" for plural in model.groups for end in ("", "url", "count")}
    unstored = SHOWN | {"specversion", "capabilities", "model", "modelsource"} | collections
    return AttributeSet(model.attributes, SERVER | unstored | {"registryid"}, ids=("registryid",), unstored=unstored)


def group_attributes(type_: GroupType) -> AttributeSet:
    """Return the attributes of a Group type."""
    collections = {f"{plural}{end}" for plural in type_.resources for end in ("", "url", "count")}
    unstored = SHOWN | collections
    return AttributeSet(type_.attributes, SERVER | {type_.id_name} | unstored, ids=(type_.id_name,), unstored=unstored)


def version_attributes(type_: ResourceType) -> AttributeSet:
    """Return the attributes of the Versions of a Resource type."""
    document = set(type_.document_names) if type_.hasdocument else set()
    names = {type_.id_name, "versionid", "isdefault", *VALIDATED}
    ids = (type_.id_name, "versionid")
    unstored = SHOWN | (document - {type_.document_names[1]})
    return AttributeSet(
        type_.attributes, SERVER | names | document, type_.document_names, ("name", "format"), ids, unstored
    )


def meta_attributes(type_: ResourceType) -> AttributeSet:
    """Return the attributes of the meta of a Resource type."""
    names = {type_.id_name, "xref", "readonly", "defaultversionurl", *DEFAULT}
    return AttributeSet(type_.metaattributes, SERVER | names, DEFAULT, not_empty=(), ids=(type_.id_name,))


def update(
    entity: Entity,
    attribute_set: AttributeSet,
    metadata: Mapping[str, Any],
    *,
    patch: bool,
    now: str,
    types: Types,
    preserved: Iterable[str] = (),
    constraints: tuple[GroupConstraint, ...] = (),
) -> None:
    """Replace the attributes of `entity` with those that a client sent (with `patch`, merge them); increase its epoch.

    `preserved` are attributes that keep their values if the client omits them. Managed members never change here.
    Raises: invalid_attribute, unknown_attribute, required_attribute_missing
    """
    stored = entity.members
    own = {name: value for name, value in metadata.items() if name not in attribute_set.managed}
    values: Members = {name: stored[name] for name in stored if name not in attribute_set.managed} if patch else {}
    values |= {name: stored[name] for name in ("createdat", *preserved) if name in stored}
    values |= own
    entity.has_own_time = _set_times(values, own, stored, now)
    fill_defaults(constraints, values, attribute_set.managed)
    try:
        checked = _checked(attribute_set, values, stored, types)
    except InvalidValue as error:
        raise refusal(error, entity.xid) from None
    preserved = attribute_set.managed if patch else attribute_set.preserved
    managed = {name: stored[name] for name in stored if name in preserved}
    entity.members = attribute_set.in_order(managed | checked)
    entity.mark_updated(now)


def _set_times(values: Members, own: Mapping[str, Any], stored: Members, now: str) -> bool:
    """Set createdat and modifiedat. Return whether the client sent a new modifiedat."""
    if values.get("createdat") is None:
        values["createdat"] = now
    requested = own.get("modifiedat")
    current = stored.get("modifiedat")
    is_same = current is not None and isinstance(requested, str) and normal_timestamp(requested) == current
    is_own = requested is not None and not is_same
    values["modifiedat"] = requested if is_own else now
    return is_own


def _checked(attribute_set: AttributeSet, values: Members, stored: Members, types: Types) -> Members:
    """Return the editable attributes in stored form. Raises: InvalidValue"""
    faults: list[ValueFault] = []
    try:
        checked = attribute_set.check(values, stored, types)
    except InvalidValue as error:
        faults, checked = [*error.faults], values
    for name in attribute_set.not_empty:
        if checked.get(name) == "":
            faults.append(ValueFault((name,), "value", "it must not be empty; leave it out instead"))
    if not faults and checked.get("deprecated"):
        faults += _faults_of_deprecated(checked["deprecated"])
    if faults:
        raise InvalidValue(*faults)
    return checked


def _faults_of_deprecated(value: Any) -> Iterator[ValueFault]:
    if "effective" in value and "removal" in value:
        effective, removal = str(value["effective"]), str(value["removal"])
        if instant_key(effective) > instant_key(removal):
            why = f"'{removal}' is earlier than 'effective' ('{effective}')"
            yield ValueFault(("deprecated", "removal"), "value", why)


MAX_NAMED: Final = 20
"""Maximum number of further faults that an error lists."""


def refusal(error: InvalidValue, subject: str) -> Refused:
    """Return the error for invalid values: that of the first fault, with the other faults in its detail."""
    first = error.first
    if first.rule == "missing":
        missing = ", ".join(fault.name for fault in error.faults if fault.rule == "missing")
        others = [fault for fault in error.faults if fault.rule != "missing"]
        return refused(first.code, subject, list=missing, detail=_also(others))
    also = _also(error.faults[1:])
    if first.rule == "unknown":
        return refused(first.code, subject, name=first.name, detail=f"{first.why}. {also or ''}".rstrip())
    return refused(first.code, subject, name=first.name, error_detail=first.why, detail=also)


def _also(others: Sequence[ValueFault]) -> str | None:
    """Return the sentence of a detail that lists the other faults, or None."""
    if not others:
        return None
    texts = [f"{fault.name}: {fault.why}" for fault in others[:MAX_NAMED]]
    if len(others) > MAX_NAMED:
        texts.append(f"and {len(others) - MAX_NAMED} more")
    return f"Also: {'; '.join(texts)}."


# -- ids and epochs -----------------------------------------------------------------------------------------------


def check_epoch(
    entity: Entity, metadata: Mapping[str, Any], *, ignored: bool = False, current: int | None = None
) -> None:
    """Compare the epoch that a client sent with the entity's. For new entities, the epoch is ignored.

    `current` is the epoch that clients see, if it is not the entity's own. Raises: invalid_attribute, mismatched_epoch
    """
    epoch = metadata.get("epoch")
    if entity.before is None or epoch is None:
        return
    if isinstance(epoch, float) and epoch.is_integer():
        epoch = int(epoch)
    if not isinstance(epoch, int) or isinstance(epoch, bool) or epoch < 0:
        why = f"{preview(epoch)} is not an unsigned integer"
        raise refused("invalid_attribute", entity.xid, name="epoch", error_detail=why)
    current = entity.before["epoch"] if current is None else current
    if not ignored and epoch != current:
        raise refused("mismatched_epoch", entity.xid, bad_epoch=epoch, epoch=current)


def check_id(metadata: Mapping[str, Any], singular: str, expected: str, subject: str, *, ignored: bool = False) -> None:
    """Compare the id that a client sent with the entity's. Raises: invalid_attribute, mismatched_id"""
    requested = metadata.get(f"{singular}id")
    if requested is None:
        return
    if as_id(requested, f"{singular}id", subject) != expected and not ignored:
        raise refused("mismatched_id", subject, singular=singular, invalid_id=requested, expected_id=expected)


def as_id(value: Any, name: str, subject: str) -> str:
    """Return the value of an id attribute, which must be a non-empty string. Raises: invalid_attribute"""
    if not isinstance(value, str) or not value:
        raise refused("invalid_attribute", subject, name=name, error_detail=f"{preview(value)} is not an identifier")
    return value


def check_new_id(id_: str, path: str, *, version: bool = False) -> None:
    """Check the id of a new entity. Raises: malformed_id"""
    if not is_identifier(id_):
        raise refused("malformed_id", path, id=id_, error_detail=f"allowed: {IDENTIFIER_IN_WORDS}")
    if version and id_ in RESERVED_VERSIONS:
        raise refused("malformed_id", path, id=id_, error_detail="the id is reserved; use another one")


def as_map(value: Any, name: str, path: str) -> Mapping[str, Mapping[str, Any]]:
    """Return `value`, which must be a map of entities. Raises: bad_request"""
    if not isinstance(value, Mapping):
        raise refused("bad_request", path, error_detail=_not_a_map(value, name))
    for key, entity in value.items():
        if not isinstance(entity, Mapping):
            raise refused("bad_request", path, error_detail=f"'{name}.{key}' must be an object; got {preview(entity)}")
    return value


def nested_map(value: Any, name: str, owner: str, path: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the map of entities that is an attribute of the entity `owner`. Raises: invalid_attribute, bad_request"""
    if not isinstance(value, Mapping):
        raise refused("invalid_attribute", owner, name=name, error_detail=_not_a_map(value, name))
    return as_map(value, name, path)


def _not_a_map(value: Any, name: str) -> str:
    return f"'{name}' must be an object with the entities by id; got {preview(value)}"
