"""Compiles a Protobuf schema with its imports and selects the message type of the payloads.

Rule: an import is a document of the catalogue (lookup.py) or a well-known type. The fragment, or the suffix after a
colon, names the message, with or without its package. Without a name, the message is the only top-level message of the
document, or the only one that no other message refers to.

Spec: schema/spec.md#434-protobuf-schema; docs/decisions/0050.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from google.protobuf import descriptor_pool
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet

from wirebook.schema.payload_problems import listed
from wirebook.schema.protobuf.columns import Descriptor
from wirebook.schema.protobuf.protoc import ProtocError, compile_files
from wirebook.schema.source import SchemaSource, UnnamedTypeError

MAX_CHARACTERS = 4 * 1024 * 1024
"""The most characters of a schema and its imports together."""
MAX_FILES = 500
WELL_KNOWN_FILES = "google/protobuf/"
_IMPORT = re.compile(r"""\bimport\s+(?:(?:public|weak|option)\s+)?(?:"([^"\n\\]{1,400})"|'([^'\n\\]{1,400})')""")
_PATH = re.compile(r"[A-Za-z0-9_@~+ .:-]+(?:/[A-Za-z0-9_@~+ .:-]+)*\Z")
_DECLARES = re.compile(r"(?:^|;|\*/)[ \t]*(?:syntax|edition)[ \t]*=", re.MULTILINE)


def descriptor_of(source: SchemaSource) -> tuple[Descriptor, dict[str, str], tuple[int, ...]]:
    """Return the message type, the comments of all fields by full name, and the indexes of the message in its file.

    Raises: ProtocError, UnnamedTypeError, ValueError, TypeError
    """
    files = texts_of(source)
    root = next(iter(files))
    descriptors = compile_files(files, root)
    pool = descriptor_pool.DescriptorPool()
    for file in descriptors.file:
        pool.Add(file)
    root_file = next(file for file in descriptors.file if file.name == root)
    places = {name: place for name, place, message in messages_of(root_file) if not message.options.map_entry}
    name = _chosen(root_file, places, source.fragment)
    return pool.FindMessageTypeByName(name), dict(_comments(descriptors)), places[name]


def messages_of(file: FileDescriptorProto) -> Iterator[tuple[str, tuple[int, ...], DescriptorProto]]:
    """Yield all messages of a file, nested ones included: full name, indexes from the top level, descriptor."""
    return _messages(file.message_type, f"{file.package}." if file.package else "", ())


def _messages(
    messages: Iterable[DescriptorProto], prefix: str, path: tuple[int, ...]
) -> Iterator[tuple[str, tuple[int, ...], DescriptorProto]]:
    for index, message in enumerate(messages):
        yield f"{prefix}{message.name}", (*path, index), message
        yield from _messages(message.nested_type, f"{prefix}{message.name}.", (*path, index))


# -- texts ------------------------------------------------------------------------------------------------------------


def texts_of(source: SchemaSource) -> dict[str, str]:
    """Return the texts of the document (first) and its imports, by the path that protoc uses.

    Raises: ProtocError
    """
    root = "schema.proto"
    texts = {root: _with_syntax(source.document, source.format.version)}
    waiting = [(root, source.base_uri)]
    size = len(texts[root])
    while waiting:
        path, base_uri = waiting.pop()
        for name in _imports(texts[path]):
            imported = None if name in texts else source.include(name, base_uri)
            if imported is not None:
                texts[name] = _with_syntax(imported.content, imported.version)
                waiting.append((name, imported.base_uri))
                size += len(imported.content)
        if size > MAX_CHARACTERS or len(texts) > MAX_FILES:
            raise ProtocError(
                f"the schema and its imports have more than {MAX_CHARACTERS} characters or {MAX_FILES} files"
            )
    return texts


def _imports(text: str) -> Iterator[str]:
    for match in _IMPORT.finditer(text):
        name = match[1] or match[2]
        parts = name.split("/")
        if _PATH.match(name) and not {".", ".."} & set(parts) and not name.startswith(WELL_KNOWN_FILES):
            yield name


def _with_syntax(text: str, version: str | None) -> str:
    """Declare proto3 in a ``Protobuf/3`` text that declares no syntax, as protoc would read it as proto2."""
    text = text.removeprefix("\ufeff")
    is_declared = _DECLARES.search(text) is not None
    return text if is_declared or not (version or "").startswith("3") else f'syntax = "proto3"; {text}'


# -- the message ------------------------------------------------------------------------------------------------------


def _chosen(file: FileDescriptorProto, places: Mapping[str, tuple[int, ...]], fragment: str | None) -> str:
    names = list(places)
    if not names:
        raise ProtocError("the schema defines no message")
    if fragment:
        suffix = fragment.strip("/").rpartition("/")[2].removeprefix(".")
        candidates = [suffix] if suffix in places else [name for name in names if name.endswith(f".{suffix}")]
        if not candidates:
            raise ProtocError(f"the schema does not define the message '{suffix}'; it defines {listed(names)}")
        return min(candidates, key=lambda name: name.count("."))
    own = [name for name, place in places.items() if len(place) == 1]
    referring: dict[str, set[int]] = {}
    for _, place, message in messages_of(file):
        for field in message.field:
            referring.setdefault(field.type_name.removeprefix("."), set()).add(place[0])
    unused = [name for name in own if referring.get(name, set()) <= set(places[name])]
    for group in (own, unused):
        if len(group) == 1:
            return group[0]
    raise UnnamedTypeError(f"the schema defines {len(own)} messages and the reference names none: {listed(own)}")


# -- comments ---------------------------------------------------------------------------------------------------------


def _comments(files: FileDescriptorSet) -> Iterator[tuple[str, str]]:
    """Yield the comment of each field by full name: the comment before it, else the one that trails it."""
    for file in files.file:
        places = file.source_code_info.location
        texts = {tuple(place.path): place.leading_comments or place.trailing_comments for place in places}
        for name, (top, *inner), message in messages_of(file):
            place = (4, top, *(number for index in inner for number in (3, index)))  # path in SourceCodeInfo
            for number, field in enumerate(message.field):
                text = texts.get((*place, 2, number))
                if text:
                    yield f"{name}.{field.name}", " ".join(text.split())
