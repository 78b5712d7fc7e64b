"""Protobuf files whose imports are not all there.

Rule: what is imported and not known (registry.md: nothing is fetched) is stood in for: an empty message for every
type that protoc misses. The document itself is checked in full; of such a type only the name is known.
"""

from __future__ import annotations

import re
from dataclasses import replace

from google.protobuf.descriptor_pb2 import FileDescriptorSet

from wirebook.schema.protobuf.protoc import ProtocError, compile_files
from wirebook.schema.protobuf.source import MAX_FILES, texts_of
from wirebook.schema.source import MissingImportsError, SchemaSource, SchemaText

STUBS = "wirebook_not_there/"
MAX_ROUNDS = 40  # protoc names a few types at a time
_UNDEFINED = re.compile(r'"(\.?[A-Za-z_][A-Za-z0-9_.]{0,400})" (?:is not defined|seems to be defined in)')
_OPTION = re.compile(r"[Oo]ption \"?\([^)]{1,400}\)")


def is_stub(file: str) -> bool:
    return file.startswith(STUBS)


def lenient_files(source: SchemaSource) -> tuple[FileDescriptorSet, str]:
    """The descriptors of a document and of what it imports, with stand-ins for what is not there; and which of the
    files is the document.

    Raises: ProtocError, MissingImportsError
    """
    missing: list[str] = []

    def include(name: str, base_uri: str) -> SchemaText | None:
        found = source.include(name, base_uri)
        if found is None:
            missing.append(name)
        return found

    texts = texts_of(replace(source, include=include))
    root = next(iter(texts))
    return (_completed(texts, root, missing) if missing else compile_files(texts, root)), root


def _completed(texts: dict[str, str], root: str, missing: list[str]) -> FileDescriptorSet:
    names: set[str] = set()
    for _ in range(MAX_ROUNDS):
        try:
            return compile_files(texts | _stubs(missing, names), root)
        except ProtocError as error:
            found = set(_UNDEFINED.findall(str(error))) - names
            if not found:
                raise _judged(error) from None
            names |= found
    raise MissingImportsError(f"more than {MAX_ROUNDS} rounds to find what of the imports is needed")


def _judged(error: ProtocError) -> ValueError:
    """An option of one's own, or a type that is no message, needs the import itself."""
    lines = str(error).split("; ")
    needs = all(_OPTION.search(line) or _UNDEFINED.search(line) or " is not an enum" in line for line in lines)
    return MissingImportsError(str(error)) if needs else error


def _stubs(missing: list[str], names: set[str]) -> dict[str, str]:
    """Files for the paths that are missing, which together define the types."""
    packages: dict[str, set[str]] = {}
    for name in names:
        package, type_ = _split(name.removeprefix("."))
        packages.setdefault(package, set()).add(type_)
    files = {f"{STUBS}{index}.proto": _file(*each) for index, each in enumerate(sorted(packages.items()))}
    public = "".join(f'import public "{path}";\n' for path in files)
    return files | dict.fromkeys(missing[:MAX_FILES], f'syntax = "proto3";\n{public}')


def _split(name: str) -> tuple[str, str]:
    """Package and type: packages begin with a small letter, by custom."""
    parts = name.split(".")
    count = next((index for index, part in enumerate(parts) if part[:1].isupper()), len(parts) - 1)
    return ".".join(parts[:count]), ".".join(parts[count:])


def _file(package: str, types: set[str]) -> str:
    declared = f"package {package};\n" if package else ""
    return f'syntax = "proto3";\n{declared}{_messages(types)}'


def _messages(types: set[str]) -> str:
    inner: dict[str, set[str]] = {}
    for type_ in types:
        first, _, rest = type_.partition(".")
        inner.setdefault(first, set()).update([rest] if rest else [])
    return "".join(f"message {name} {{ {_messages(rest)} }}\n" for name, rest in sorted(inner.items()))
