"""JSON Pointers, which address a value in a document.

Spec: RFC 6901.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def escape(token: object) -> str:
    """Return a reference token with ``~`` and ``/`` escaped."""
    text = token if isinstance(token, str) else str(token)
    return text if "~" not in text and "/" not in text else text.replace("~", "~0").replace("/", "~1")


def unescape(token: str) -> str:
    """Return the member name that an escaped reference token stands for."""
    return token.replace("~1", "/").replace("~0", "~")


def format_pointer(tokens: Iterable[object]) -> str:
    """Return the pointer with these member names and indexes."""
    return "".join(f"/{escape(token)}" for token in tokens)


def parse_pointer(pointer: str) -> tuple[str, ...]:
    """Return the unescaped tokens of a pointer. A leading ``#`` (the URI fragment form) is ignored."""
    return tuple(unescape(token) for token in pointer.removeprefix("#").split("/")[1:])


def child(pointer: str, token: object) -> str:
    """Return the pointer of a member or an item of the value at `pointer`."""
    return f"{pointer}/{escape(token)}"


def parent(pointer: str) -> str:
    """Return the pointer of the object or array that contains the value at `pointer`."""
    return pointer.rpartition("/")[0]


def prefixes(pointer: str) -> Iterable[str]:
    """Yield `pointer` and the pointers of all its ancestors, innermost first, the document (``""``) last."""
    while pointer:
        yield pointer
        pointer = parent(pointer)
    yield ""


def resolve(document: Any, pointer: str, default: Any = None) -> Any:
    """Return the value at `pointer` in `document`, or `default` if there is none."""
    value = document
    for token in parse_pointer(pointer):
        if isinstance(value, dict) and token in value:
            value = value[token]
        elif isinstance(value, list) and token.isdecimal() and int(token) < len(value):
            value = value[int(token)]
        else:
            return default
    return value
