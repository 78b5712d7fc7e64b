"""Protocol Buffers: can a parser of the new schema read the bytes that the old one allows?

Rule: the wire decides. Fields are told by their numbers, types by what the text calls compatible; names of fields and
types, JSON names, services and options are free to change, as no byte has them.

Spec: protobuf.dev "Updating A Message Type", "Oneof: Backwards-compatibility Issues", "Reserved Fields", "Field
Presence"; schema/spec.md#434-protobuf-schema (a payload is any message of the document).
Reading: what the text calls compatible for some values only (bytes that happen to be UTF-8, or a message) is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from google.protobuf import descriptor_pool
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorSet

from wirebook.schema.incompatibilities import Incompatibility, Steps
from wirebook.schema.protobuf.columns import Descriptor
from wirebook.schema.protobuf.compatibility_imports import is_stub, lenient_files
from wirebook.schema.source import SchemaSource

F = FieldDescriptorProto
VARINTS = frozenset((F.TYPE_INT32, F.TYPE_UINT32, F.TYPE_INT64, F.TYPE_UINT64, F.TYPE_BOOL))
FAMILIES = (
    VARINTS,
    frozenset((F.TYPE_SINT32, F.TYPE_SINT64)),
    frozenset((F.TYPE_FIXED32, F.TYPE_SFIXED32)),
    frozenset((F.TYPE_FIXED64, F.TYPE_SFIXED64)),
)
NUMERIC = frozenset(F.Type.values()) - {F.TYPE_STRING, F.TYPE_BYTES, F.TYPE_MESSAGE, F.TYPE_GROUP}
WIDENED = frozenset(((F.TYPE_STRING, F.TYPE_BYTES), (F.TYPE_MESSAGE, F.TYPE_BYTES)))  # old, new
ENUM_WIDTHS = VARINTS - {F.TYPE_BOOL}
TYPES = {number: name.removeprefix("TYPE_").lower() for name, number in F.Type.items()}


def backward(old: SchemaSource, new: SchemaSource) -> list[Incompatibility]:
    """Why bytes of a message of `old` cannot be parsed by that of `new`; both are valid schemas.

    Raises: TooComplexError, ProtocError
    """
    return list(
        _MessageComparison(
            _ProtobufFile(*lenient_files(old)), _ProtobufFile(*lenient_files(new)), Steps()
        ).incompatibilities()
    )


@dataclass(frozen=True)
class _Member:
    """A field of a message, or an extension of it, with what the editions make of it. `oneof` names a real one."""

    field: Descriptor
    oneof: str | None = None

    @property
    def described(self) -> str:
        type_ = self.type_name or TYPES[self.field.type]
        return f"repeated {type_}" if self.field.is_repeated else type_

    @property
    def type_name(self) -> str:
        declared = self.field.message_type or self.field.enum_type
        return str(declared.full_name) if declared is not None else ""


class _ProtobufFile:
    """A file with its imports. Shape: `own` the names of the messages that the document itself has at its top."""

    def __init__(self, files: FileDescriptorSet, root: str) -> None:
        self.pool = descriptor_pool.DescriptorPool()
        self.protos: dict[str, DescriptorProto] = {}
        self.stubs: set[str] = set()
        self.package, self.own = "", list[str]()
        for file in files.file:
            self.pool.Add(file)
            prefix = f"{file.package}." if file.package else ""
            found = dict(_messages(file.message_type, prefix))
            self.protos |= found
            if is_stub(file.name):
                self.stubs |= found.keys()
            if file.name == root:
                self.package, self.own = file.package, [f"{prefix}{each.name}" for each in file.message_type]

    def members(self, name: str) -> dict[int, _Member]:
        """The fields of a message by their numbers, and what extends it."""
        message, descriptor = self.protos[name], self.pool.FindMessageTypeByName(name)
        fields = zip(message.field, descriptor.fields, strict=True)
        own = [_Member(field, _oneof(message, proto)) for proto, field in fields]
        extensions = map(_Member, self.pool.FindAllExtensions(descriptor))
        return {each.field.number: each for each in [*own, *extensions]}

    def enum(self, member: _Member) -> tuple[dict[str, int], bool]:
        """The numbers of an enum by their names, and whether it is closed."""
        enum = member.field.enum_type
        return {value.name: value.number for value in enum.values}, bool(enum.is_closed)


def _messages(messages: Any, prefix: str) -> Iterator[tuple[str, DescriptorProto]]:
    for message in messages:
        yield f"{prefix}{message.name}", message
        yield from _messages(message.nested_type, f"{prefix}{message.name}.")


def _oneof(message: DescriptorProto, field: FieldDescriptorProto) -> str | None:
    real = field.HasField("oneof_index") and not field.proto3_optional
    return message.oneof_decl[field.oneof_index].name if real else None


class _MessageComparison:
    """All messages of the old document with those of the new one, and the types that their fields lead to."""

    def __init__(self, old: _ProtobufFile, new: _ProtobufFile, steps: Steps) -> None:
        self.old, self.new, self.steps = old, new, steps
        self.seen: set[tuple[str, str]] = set()
        self.waiting: list[tuple[str, str]] = []

    def incompatibilities(self) -> Iterator[Incompatibility]:
        if self.old.package != self.new.package:
            yield Incompatibility("package", "package-changed", self.old.package or "none", self.new.package or "none")
            return
        for name in self.old.own:
            if name in self.new.protos:
                self._wait(name, name)
            else:
                yield Incompatibility(name, "message-removed", name, None)
        while self.waiting:
            yield from self._message(*self.waiting.pop())

    def _wait(self, old: str, new: str) -> None:
        if (old, new) not in self.seen:
            self.seen.add((old, new))
            self.waiting.append((old, new))

    def _message(self, old: str, new: str) -> Iterator[Incompatibility]:
        before, after = self.old.protos[old], self.new.protos[new]
        if before.options.message_set_wire_format != after.options.message_set_wire_format:
            yield Incompatibility(new, "message-set-changed", _wire_format(before), _wire_format(after))
        was, is_ = self.old.members(old), self.new.members(new)
        self.steps.take(1 + len(was) + len(is_))
        for number, member in sorted(is_.items()):
            path = f"{new}.{member.field.name}"
            yield from self._field(was[number], member, path) if number in was else _added(before, member, path)
        yield from _oneofs(was, is_, new)

    def _field(self, old: _Member, new: _Member, path: str) -> Iterator[Incompatibility]:
        if new.field.is_required and not old.field.is_required:
            yield Incompatibility(path, "required-added", _label(old), "required")
        type_, to = old.field.type, new.field.type
        if old.field.is_repeated and not new.field.is_repeated and (type_ in NUMERIC or to in NUMERIC):
            yield Incompatibility(path, "repeated-to-single", old.described, new.described)
        if F.TYPE_MESSAGE == type_ == to or F.TYPE_GROUP == type_ == to:
            yield from self._messages(old, new, path)
        elif type_ == to == F.TYPE_ENUM:
            yield from self._enums(old, new, path)
        elif not _is_compatible(type_, to):
            yield Incompatibility(path, "type-changed", old.described, new.described)

    def _messages(self, old: _Member, new: _Member, path: str) -> Iterator[Incompatibility]:
        names = old.type_name, new.type_name
        if names[0] in self.old.stubs or names[1] in self.new.stubs:
            if names[0] != names[1]:
                yield Incompatibility(path, "type-changed", *names)
            return
        self._wait(*names)

    def _enums(self, old: _Member, new: _Member, path: str) -> Iterator[Incompatibility]:
        """An open enum keeps a number that it has no name for; a closed one loses it."""
        was, _ = self.old.enum(old)
        is_, closed = self.new.enum(new)
        self.steps.take(1 + len(was) + len(is_))
        numbers = set(is_.values())
        for name, number in was.items():
            if is_.get(name, number) != number:
                yield Incompatibility(f"{path}.{name}", "enum-value-renumbered", number, is_[name])
            elif closed and number not in numbers:
                yield Incompatibility(f"{path}.{name}", "enum-value-removed", f"{name} = {number}", None)


def _added(message: DescriptorProto, member: _Member, path: str) -> Iterator[Incompatibility]:
    """A number that the old message has no field for: bytes may still have it, if it was in use once."""
    number = member.field.number
    if member.field.is_required:
        yield Incompatibility(path, "required-added", None, "required")
    ranges = [each for each in message.reserved_range if each.start <= number < each.end]
    if ranges:
        yield Incompatibility(path, "reserved-number-used", f"{number} reserved", number)
    extensions = [each for each in message.extension_range if each.start <= number < each.end]
    if extensions and not member.field.is_extension:
        yield Incompatibility(path, "extension-number-used", f"{number} for extensions", number)


def _oneofs(old: dict[int, _Member], new: dict[int, _Member], path: str) -> Iterator[Incompatibility]:
    """Of the members of a oneof only the last one in the bytes is kept: those that could stand together are not moved
    into one."""
    joined: dict[str, list[int]] = {}
    for number, member in new.items():
        if member.oneof and number in old:
            joined.setdefault(member.oneof, []).append(number)
    for name, numbers in joined.items():
        homes = {old[number].oneof for number in numbers}
        if len(numbers) > 1 and (None in homes or len(homes) > 1):
            names = [old[number].field.name for number in sorted(numbers)]
            yield Incompatibility(f"{path}.{name}", "moved-into-oneof", names, f"oneof {name}")


def _is_compatible(old: int, new: int) -> bool:
    if old == new or (old, new) in WIDENED:
        return True
    if F.TYPE_ENUM in (old, new):
        return (old if new == F.TYPE_ENUM else new) in ENUM_WIDTHS
    return any(old in family and new in family for family in FAMILIES)


def _label(member: _Member) -> str:
    return "repeated" if member.field.is_repeated else "optional"


def _wire_format(message: DescriptorProto) -> str:
    return "message set" if message.options.message_set_wire_format else "plain message"
