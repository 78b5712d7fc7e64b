"""What makes a definition or an alias wrong once references are followed.

Spec: message/spec.md#envelope, #message-protocols; core/spec.md#cross-referencing-resources; docs/semantics.md R4,
D27, D30, D33, D41.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from wirebook.core.xid import is_message, parse_xid
from wirebook.definitions.normalize.document_messages import DocumentMessage
from wirebook.definitions.normalize.preview import preview
from wirebook.problems import Problem
from wirebook.text.pointers import escape

SELECTORS: Final = ("envelope", "protocol")
EXCLUSIVE: Final = (
    ("HTTP", "method", "status", "method-and-status"),
    ("KAFKA", "key", "key_base64", "key-and-key-base64"),
)


def contradictions(attributes: dict[str, Any], definition: DocumentMessage) -> Iterator[Problem]:
    """What makes a definition no candidate: options that exclude each other (D30, D33), another group's selectors."""
    options = attributes.get("protocoloptions")
    for protocol, first, second, code in EXCLUSIVE:
        if attributes.get("protocol") == protocol and isinstance(options, dict) and {first, second} <= options.keys():
            message = f"'{first}' and '{second}' exclude each other; remove one"
            yield Problem(
                code=code, message=message, pointer=f"{definition.pointer}/protocoloptions/{second}", xid=definition.xid
            )
    for name in SELECTORS:
        group, own = definition.group.get(name), attributes.get(name)
        if isinstance(group, str) and isinstance(own, str) and not fits_selector(group, own):
            yield _foreign_selector(definition, name, group, own)


def _foreign_selector(definition: DocumentMessage, name: str, group: str, own: str) -> Problem:
    """A group's messages all have its envelope and its protocol, those it borrows too (R4, D27, D41)."""
    code, at = (f"{name}-mismatch", name) if definition.xref is None else ("xref-selector", "meta/xref")
    holder = "endpoint" if definition.container.startswith("/endpoints/") else "group"
    return Problem(
        code=code,
        message=f"the message has the {name} '{preview(own)}' and its {holder} '{preview(group)}'",
        pointer=f"{definition.pointer}/{at}",
        xid=definition.xid,
        expected=group,
        actual=own,
    )


def alias_problems(
    definition: DocumentMessage, definitions: dict[str, DocumentMessage]
) -> Iterator[tuple[str, str, str]]:
    """(code, pointer, message) of everything wrong with an alias (D41)."""
    if definition.xref is None:
        return
    pointer = f"{definition.pointer}/meta/xref"
    target = definitions.get(definition.xref)
    for tokens in alias_siblings(definition.resource, None if target is None else target.resource, "messageid"):
        yield "xref-sibling", f"{definition.pointer}/{'/'.join(tokens)}", sibling_message(tokens)
    if target is None:
        reference = parse_xid(definition.xref)
        if not is_message(reference) or (reference and reference.version):
            yield "bad-xref", pointer, f"'{preview(definition.xref)}' is not the XID of a message"
        else:
            yield "dangling-xref", pointer, f"'{preview(definition.xref)}' does not exist in the catalogue"
        return
    if target.xref is not None:
        yield (
            "xref-to-alias",
            pointer,
            f"'{preview(definition.xref)}' is itself an alias; refer to its target",
        )


# What an alias may have beside `xref`: its identity. Other attributes are its target's.
ALIAS_NAMES: Final = frozenset({"self", "shortself", "xid", "meta", "metaurl", "versionsurl", "versionscount"})
ALIAS_META_NAMES: Final = frozenset({"self", "shortself", "xid", "xref", "defaultversionurl"})
# What a server shows although nobody set it.
META_DEFAULTS: Final = {"readonly": False, "defaultversionsticky": False, "compatibility": "none"}


def alias_siblings(alias: dict[str, Any], target: dict[str, Any] | None, id_name: str) -> Iterator[tuple[str, ...]]:
    """The members of a Resource that is an alias which it must not have, as tokens of a pointer.

    Spec: core/spec.md#cross-referencing-resources ("MUST NOT include nested collections or any other attributes").
    """
    # Reading: a server shows an alias with its target's attributes; what says the same as the target is no sibling.
    shown_attributes, shown_meta = _shown_by(target)
    for name, value in alias.items():
        if name not in ALIAS_NAMES and name != id_name and not _same(name, value, shown_attributes):
            yield (escape(name),)
    meta = alias.get("meta")
    for name, value in meta.items() if isinstance(meta, dict) else ():
        if name not in ALIAS_META_NAMES and name != id_name and not _same(name, value, shown_meta):
            yield "meta", escape(name)


def _shown_by(target: dict[str, Any] | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """The attributes of a Resource and of its `meta`, as a server shows them for it and for its aliases."""
    if target is None:
        return {}, {}
    versions: dict[str, Any] = target.get("versions") or {}
    meta: dict[str, Any] = target.get("meta") or {}
    default = str(meta.get("defaultversionid", target.get("versionid", next(iter(versions), ""))))
    attributes = {**target, **(versions.get(default) or {}), "versionid": default}
    dates = {name: target[name] for name in ("createdat", "modifiedat") if name in target}
    return attributes, META_DEFAULTS | dates | meta | {"defaultversionid": default}


def _same(name: str, value: Any, shown_attributes: dict[str, Any]) -> bool:
    expected = shown_attributes.get(name)
    if name == "versions" and isinstance(value, dict) and isinstance(expected, dict):
        return value.keys() == expected.keys()
    return value is None or value == expected


def sibling_message(tokens: tuple[str, ...]) -> str:
    name = ".".join(tokens)
    return f"'{name}' has no effect: a Resource with 'meta.xref' has the attributes of its target; remove it"


def fits_selector(group: str, message: str) -> bool:
    """Is the message's selector the group's, or more precise (R4)?"""
    # Reading: the endpoint text lets a group be less precise than its messages; so may a message group.
    here, there = group.casefold(), message.casefold()
    return here == there or there.startswith(f"{here}/")
