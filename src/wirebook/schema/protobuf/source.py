"""A Protobuf schema's text and all that it imports, to the descriptor of one message.

Rule: an import is a document of the catalogue (lookup.py) or one of the well-known types. The fragment, or the suffix
behind a colon, names the message, with or without its package; without either it is the one message of the document,
or the one that no other message of it refers to.

Spec: schema/spec.md#434-protobuf-schema; docs/decisions/0050.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from google.protobuf import descriptor_pool
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet

from wirebook.schema.protobuf.protoc import ProtocError, compile_files
from wirebook.schema.source import SchemaSource, UnnamedTypeError

MAX_BYTES = 4 * 1024 * 1024  # of text, imports included
MAX_FILES = 500
WELL_KNOWN = "google/protobuf/"
_IMPORT = re.compile(r"""\bimport\s+(?:(?:public|weak|option)\s+)?(?:"([^"\n\\]{1,400})"|'([^'\n\\]{1,400})')""")
_PATH = re.compile(r"[A-Za-z0-9_@~+ .:-]+(?:/[A-Za-z0-9_@~+ .:-]+)*\Z")
_DECLARES = re.compile(r"(?:^|;|\*/)[ \t]*(?:syntax|edition)[ \t]*=", re.MULTILINE)

Descriptor = Any  # of google.protobuf.descriptor, whose classes are made in C


def descriptor_of(source: SchemaSource) -> tuple[Descriptor, dict[str, str], tuple[int, ...]]:
    """The message, in a pool of its own; the comments of all members, by their full names; and the message's place in
    its file: its index, and those inside it.

    Raises: ProtocError, UnnamedTypeError, ValueError, TypeError
    """
    files = texts_of(source)
    root = next(iter(files))
    found = compile_files(files, root)
    pool = descriptor_pool.DescriptorPool()
    for file in found.file:
        pool.Add(file)
    own = next(file for file in found.file if file.name == root)
    name = _chosen(own, source.fragment)
    return pool.FindMessageTypeByName(name), dict(_comments(found)), _places(own)[name]


# -- texts ------------------------------------------------------------------------------------------------------------


def texts_of(source: SchemaSource) -> dict[str, str]:
    """The document, first, and what it imports, by the paths that protoc knows them by. Raises: ProtocError"""
    root = "schema.proto"
    texts = {root: _with_syntax(source.document, source.format.version)}
    waiting = [(root, source.base_uri)]
    size = len(texts[root])
    while waiting:
        path, base_uri = waiting.pop()
        for name in _imports(texts[path]):
            found = None if name in texts else source.include(name, base_uri)
            if found is not None:
                texts[name] = _with_syntax(found.content, found.version)
                waiting.append((name, found.base_uri))
                size += len(found.content)
        if size > MAX_BYTES or len(texts) > MAX_FILES:
            raise ProtocError(f"the schema and its imports are more than {MAX_BYTES} characters or {MAX_FILES} files")
    return texts


def _imports(text: str) -> Iterator[str]:
    for found in _IMPORT.finditer(text):
        name = found[1] or found[2]
        parts = name.split("/")
        if _PATH.match(name) and not {".", ".."} & set(parts) and not name.startswith(WELL_KNOWN):
            yield name


def _with_syntax(text: str, version: str | None) -> str:
    """A text that names no syntax has that of the format's name: ``Protobuf/3``."""
    text = text.removeprefix("\ufeff")
    declared = _DECLARES.search(text) is not None
    return text if declared or not (version or "").startswith("3") else f'syntax = "proto3"; {text}'


# -- the message ------------------------------------------------------------------------------------------------------


def _places(file: FileDescriptorProto) -> dict[str, tuple[int, ...]]:
    """Each message of a file by its full name, with the indexes that lead to it."""
    prefix = f"{file.package}." if file.package else ""
    return dict(_nested(file.message_type, prefix, ()))


def _nested(messages: Any, prefix: str, path: tuple[int, ...]) -> Iterator[tuple[str, tuple[int, ...]]]:
    for index, message in enumerate(messages):
        if not message.options.map_entry:
            yield f"{prefix}{message.name}", (*path, index)
            yield from _nested(message.nested_type, f"{prefix}{message.name}.", (*path, index))


def _chosen(file: FileDescriptorProto, part: str | None) -> str:
    names = list(_places(file))
    if not names:
        raise ProtocError("the schema defines no message")
    if part:
        wanted = part.strip("/").rpartition("/")[2].removeprefix(".")
        found = [name for name in names if name == wanted] or [name for name in names if name.endswith(f".{wanted}")]
        if not found:
            raise ProtocError(f"the schema does not define the message '{wanted}'; it defines {_listed(names)}")
        return min(found, key=lambda name: name.count("."))
    prefix = f"{file.package}." if file.package else ""
    own = [f"{prefix}{each.name}" for each in file.message_type]
    unused = [name for name in own if name not in _used(file, name)]
    for candidates in (own, unused):
        if len(candidates) == 1:
            return candidates[0]
    raise UnnamedTypeError(f"the schema defines {len(own)} messages and the reference names none: {_listed(own)}")


def _used(file: FileDescriptorProto, but: str) -> set[str]:
    """The messages that members of other messages refer to."""
    prefix = f"{file.package}." if file.package else ""
    others = [each for each in file.message_type if f"{prefix}{each.name}" != but]
    return {name for other in others for name in _referred(other)}


def _referred(message: DescriptorProto) -> Iterator[str]:
    yield from (field.type_name.removeprefix(".") for field in message.field if field.type_name)
    for inner in message.nested_type:
        yield from _referred(inner)


def _listed(names: list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names[:10]) + (", ..." if len(names) > 10 else "")


# -- comments ---------------------------------------------------------------------------------------------------------


def _comments(files: FileDescriptorSet) -> Iterator[tuple[str, str]]:
    """The comment of each member, by its full name: what stands before it, else behind it on its line."""
    for file in files.file:
        places = file.source_code_info.location
        texts = {tuple(place.path): place.leading_comments or place.trailing_comments for place in places}
        prefix = f"{file.package}." if file.package else ""
        yield from _described(file.message_type, prefix, (4,), texts)


def _described(
    messages: Any, prefix: str, path: tuple[int, ...], texts: Mapping[tuple[int, ...], str]
) -> Iterator[tuple[str, str]]:
    """4, 3 and 2 are the numbers of messages, nested messages and fields in descriptor.proto."""
    for index, message in enumerate(messages):
        for number, field in enumerate(message.field):
            text = texts.get((*path, index, 2, number))
            if text:
                yield f"{prefix}{message.name}.{field.name}", " ".join(text.split())
        yield from _described(message.nested_type, f"{prefix}{message.name}.", (*path, index, 3), texts)
