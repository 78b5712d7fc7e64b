"""Compiles a Protobuf file of which some imports are unknown.

Rule: nothing is fetched (registry.md). An unknown import is replaced by files that define every type that protoc does
not find as an empty message. The document itself is checked in full; of the missing types, only the names are known.
"""

from __future__ import annotations

import re
from dataclasses import replace

from google.protobuf.descriptor_pb2 import FileDescriptorSet

from wirebook.schema.protobuf.protoc import ProtocError, compile_files
from wirebook.schema.protobuf.source import MAX_FILES, texts_of
from wirebook.schema.source import MissingImportsError, SchemaSource, SchemaText

STUBS = "wirebook_not_there/"
"""The folder of the files that define replacements for missing types."""
MAX_ROUNDS = 40
"""The most attempts to compile: protoc reports only a few missing types at a time."""
_UNDEFINED = re.compile(r'"(\.?[A-Za-z_][A-Za-z0-9_.]{0,400})" (?:is not defined|seems to be defined in)')
_OPTION = re.compile(r"[Oo]ption \"?\([^)]{1,400}\)")


def is_stub(file: str) -> bool:
    """Whether a file defines replacements for missing types."""
    return file.startswith(STUBS)


def lenient_files(source: SchemaSource) -> tuple[FileDescriptorSet, str]:
    """Return the descriptors of a document and its imports, with unknown imports replaced, and the name of its file.

    Raises: ProtocError, MissingImportsError
    """
    missing: list[str] = []

    def include(name: str, base_uri: str) -> SchemaText | None:
        imported = source.include(name, base_uri)
        if imported is None:
            missing.append(name)
        return imported

    texts = texts_of(replace(source, include=include))
    root = next(iter(texts))
    if not missing:
        return compile_files(texts, root), root
    names: set[str] = set()
    for _ in range(MAX_ROUNDS):
        try:
            return compile_files(texts | _stubs(missing, names), root), root
        except ProtocError as error:
            undefined = set(_UNDEFINED.findall(str(error))) - names
            if not undefined and _needs_import(error):
                raise MissingImportsError(str(error)) from None
            if not undefined:
                raise
            names |= undefined
    raise MissingImportsError(f"the types of the missing imports were not found in {MAX_ROUNDS} attempts")


def _needs_import(error: ProtocError) -> bool:
    """Whether only the real import can resolve an error: it concerns custom options, or types that are not messages."""
    lines = str(error).split("; ")
    return all(_OPTION.search(line) or _UNDEFINED.search(line) or " is not an enum" in line for line in lines)


def _stubs(missing: list[str], names: set[str]) -> dict[str, str]:
    """Return files that define the types `names`, and files at the `missing` paths that import them all."""
    packages: dict[str, set[str]] = {}
    for name in names:
        package, type_ = _split(name.removeprefix("."))
        packages.setdefault(package, set()).add(type_)
    files = {}
    for index, (package, types) in enumerate(sorted(packages.items())):
        package_line = f"package {package};\n" if package else ""
        files[f"{STUBS}{index}.proto"] = f'syntax = "proto3";\n{package_line}{_messages(types)}'
    public = "".join(f'import public "{path}";\n' for path in files)
    return files | dict.fromkeys(missing[:MAX_FILES], f'syntax = "proto3";\n{public}')


def _split(name: str) -> tuple[str, str]:
    """Split a full name into package and type. By convention, type names begin with an upper-case letter."""
    parts = name.split(".")
    count = next((index for index, part in enumerate(parts) if part[:1].isupper()), len(parts) - 1)
    return ".".join(parts[:count]), ".".join(parts[count:])


def _messages(types: set[str]) -> str:
    inner: dict[str, set[str]] = {}
    for type_ in types:
        first, _, rest = type_.partition(".")
        inner.setdefault(first, set()).update([rest] if rest else [])
    return "".join(f"message {name} {{ {_messages(rest)} }}\n" for name, rest in sorted(inner.items()))
