"""Protobuf compatibility: can a parser with the new schema read all bytes that the old schema allows?

Rule: only the wire format counts. Fields are identified by number, and types are compatible as the specification says.
Names of fields and types, JSON names, services and options may change: they are not in the bytes.

Spec: protobuf.dev "Updating A Message Type", "Oneof: Backwards-compatibility Issues", "Reserved Fields", "Field
Presence"; schema/spec.md#434-protobuf-schema (a payload is any message of the document).
Reading: types that are compatible only for some values (bytes that happen to be valid UTF-8 or a message) are reported
as incompatible.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from google.protobuf import descriptor_pool
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorSet

from wirebook.schema.incompatibilities import Incompatibility, Steps
from wirebook.schema.protobuf.columns import FieldDescriptor
from wirebook.schema.protobuf.compatibility_imports import is_stub, lenient_files
from wirebook.schema.protobuf.source import messages_of
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
WIDENED = frozenset(((F.TYPE_STRING, F.TYPE_BYTES), (F.TYPE_MESSAGE, F.TYPE_BYTES)))
"""Pairs of an old and a new type that are compatible in this direction only."""
ENUM_WIDTHS = VARINTS - {F.TYPE_BOOL}
TYPES = {number: name.removeprefix("TYPE_").lower() for name, number in F.Type.items()}


def backward(old: SchemaSource, new: SchemaSource) -> list[Incompatibility]:
    """Return why bytes of a message of `old` cannot always be parsed with `new`. Both must be valid schemas.

    Raises: ProtocError, MissingImportsError, TooComplexError
    """
    before, after = (_ProtobufFile(*lenient_files(source)) for source in (old, new))
    return list(_MessageComparison(before, after, Steps()).incompatibilities())


@dataclass(frozen=True)
class _Member:
    """A field or an extension of a message. `oneof` is the name of its oneof, unless that is synthetic."""

    field: FieldDescriptor
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
    """A file with its imports. Shape: `own` are the full names of the top-level messages of the file itself."""

    def __init__(self, files: FileDescriptorSet, root: str) -> None:
        self.pool = descriptor_pool.DescriptorPool()
        self.protos: dict[str, DescriptorProto] = {}
        self.stubs: set[str] = set()
        self.package, self.own = "", list[str]()
        for file in files.file:
            self.pool.Add(file)
            messages = {name: message for name, _, message in messages_of(file)}
            self.protos |= messages
            if is_stub(file.name):
                self.stubs |= messages.keys()
            if file.name == root:
                self.package = file.package
                self.own = [name for name, place, _ in messages_of(file) if len(place) == 1]

    def members(self, name: str) -> dict[int, _Member]:
        """Return the fields and extensions of a message by number."""
        message, descriptor = self.protos[name], self.pool.FindMessageTypeByName(name)
        members = list(map(_Member, self.pool.FindAllExtensions(descriptor)))
        for proto, field in zip(message.field, descriptor.fields, strict=True):
            is_in_oneof = proto.HasField("oneof_index") and not proto.proto3_optional
            members.append(_Member(field, message.oneof_decl[proto.oneof_index].name if is_in_oneof else None))
        return {member.field.number: member for member in members}


class _MessageComparison:
    """Compares all messages of the old document with those of the new one, and the types of their fields."""

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
        old_members, new_members = self.old.members(old), self.new.members(new)
        self.steps.take(1 + len(old_members) + len(new_members))
        for number, member in sorted(new_members.items()):
            path = f"{new}.{member.field.name}"
            if number in old_members:
                yield from self._field(old_members[number], member, path)
            else:
                yield from _added(before, member, path)
        yield from _oneofs(old_members, new_members, new)

    def _field(self, old: _Member, new: _Member, path: str) -> Iterator[Incompatibility]:
        if new.field.is_required and not old.field.is_required:
            label = "repeated" if old.field.is_repeated else "optional"
            yield Incompatibility(path, "required-added", label, "required")
        type_, to = old.field.type, new.field.type
        if old.field.is_repeated and not new.field.is_repeated and (type_ in NUMERIC or to in NUMERIC):
            yield Incompatibility(path, "repeated-to-single", old.described, new.described)
        if (
            new.field.is_required
            and _keeps_only_named(new)
            and not _keeps_only_named(old)
            and _is_compatible(type_, to)
        ):
            # a number without a name is lost, and the message is then not complete
            yield Incompatibility(path, "type-changed", old.described, new.described)
        elif F.TYPE_MESSAGE == type_ == to or F.TYPE_GROUP == type_ == to:
            if old.type_name not in self.old.stubs and new.type_name not in self.new.stubs:
                self._wait(old.type_name, new.type_name)
            elif old.type_name != new.type_name:
                yield Incompatibility(path, "type-changed", old.type_name, new.type_name)
        elif type_ == to == F.TYPE_ENUM:
            yield from self._enums(old, new, path)
        elif not _is_compatible(type_, to):
            yield Incompatibility(path, "type-changed", old.described, new.described)

    def _enums(self, old: _Member, new: _Member, path: str) -> Iterator[Incompatibility]:
        """Compare two enums. Numbers without a name are kept by open enums and lost by closed ones."""
        old_numbers, new_numbers = (
            {value.name: value.number for value in member.field.enum_type.values} for member in (old, new)
        )
        self.steps.take(1 + len(old_numbers) + len(new_numbers))
        numbers = set(new_numbers.values())
        for name, number in old_numbers.items():
            if new_numbers.get(name, number) != number:
                yield Incompatibility(f"{path}.{name}", "enum-value-renumbered", number, new_numbers[name])
            elif new.field.enum_type.is_closed and number not in numbers:
                yield Incompatibility(f"{path}.{name}", "enum-value-removed", f"{name} = {number}", None)


def _added(message: DescriptorProto, member: _Member, path: str) -> Iterator[Incompatibility]:
    """Check an added field. Its number must not be reserved: old bytes may contain a removed field with this number."""
    number = member.field.number
    if member.field.is_required:
        yield Incompatibility(path, "required-added", None, "required")
    reserved = [range_ for range_ in message.reserved_range if range_.start <= number < range_.end]
    if reserved:
        yield Incompatibility(path, "reserved-number-used", f"{number} reserved", number)
    extensions = [range_ for range_ in message.extension_range if range_.start <= number < range_.end]
    if extensions and not member.field.is_extension:
        yield Incompatibility(path, "extension-number-used", f"{number} for extensions", number)


def _oneofs(old: dict[int, _Member], new: dict[int, _Member], path: str) -> Iterator[Incompatibility]:
    """Check fields that moved into a oneof.

    A parser keeps only the last member of a oneof, so fields that may occur together in old bytes must not share one.
    """
    members: dict[str, list[int]] = {}
    for number, member in new.items():
        if member.oneof and number in old:
            members.setdefault(member.oneof, []).append(number)
    for name, numbers in members.items():
        old_oneofs = {old[number].oneof for number in numbers}
        if len(numbers) > 1 and (None in old_oneofs or len(old_oneofs) > 1):
            names = [old[number].field.name for number in sorted(numbers)]
            yield Incompatibility(f"{path}.{name}", "moved-into-oneof", names, f"oneof {name}")


def _keeps_only_named(member: _Member) -> bool:
    """Whether a parser drops numbers that have no name: those of a closed enum."""
    return member.field.enum_type is not None and bool(member.field.enum_type.is_closed)


def _is_compatible(old: int, new: int) -> bool:
    if old == new or (old, new) in WIDENED:
        return True
    if F.TYPE_ENUM in (old, new):
        return (old if new == F.TYPE_ENUM else new) in ENUM_WIDTHS
    return any(old in family and new in family for family in FAMILIES)


def _wire_format(message: DescriptorProto) -> str:
    return "message set" if message.options.message_set_wire_format else "plain message"
