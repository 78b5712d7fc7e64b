"""JSON Pointers: where a value stands in a document.

Spec: RFC 6901.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def escape(token: object) -> str:
    """One reference token as a pointer spells it."""
    text = token if isinstance(token, str) else str(token)
    return text if "~" not in text and "/" not in text else text.replace("~", "~0").replace("/", "~1")


def unescape(token: str) -> str:
    return token.replace("~1", "/").replace("~0", "~")


def format_pointer(tokens: Iterable[object]) -> str:
    return "".join(f"/{escape(token)}" for token in tokens)


def parse_pointer(pointer: str) -> tuple[str, ...]:
    """The tokens of a pointer; a leading ``#`` (the fragment form) is tolerated."""
    return tuple(unescape(token) for token in pointer.removeprefix("#").split("/")[1:])


def child(pointer: str, token: object) -> str:
    """The pointer of a member or item of what `pointer` names."""
    return f"{pointer}/{escape(token)}"


def parent(pointer: str) -> str:
    return pointer.rpartition("/")[0]


def prefixes(pointer: str) -> Iterable[str]:
    """`pointer` and everything that holds it, innermost first, the document (``""``) last."""
    while pointer:
        yield pointer
        pointer = parent(pointer)
    yield ""


def resolve(document: Any, pointer: str, default: Any = None) -> Any:
    """What `pointer` names in `document`, or `default`."""
    value = document
    for token in parse_pointer(pointer):
        if isinstance(value, dict) and token in value:
            value = value[token]
        elif isinstance(value, list) and token.isdecimal() and int(token) < len(value):
            value = value[int(token)]
        else:
            return default
    return value
