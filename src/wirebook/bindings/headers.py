"""Headers of HTTP and NATS: names are case-insensitive, values are trimmed, order and repetitions are kept.

The binding of Kafka uses `set_content_type`, `replaced` and `wire_lines`, too.

Spec: http-protocol-binding.md#313-metadata-headers; nats-protocol-binding.md#312-metadata-headers;
docs/semantics.md D30, D34
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from wirebook.bindings.attributes import WELL_KNOWN, attribute_slot, malformed
from wirebook.bindings.cloudevents import WireParts, add_attribute, not_text
from wirebook.bindings.percent import PLAIN, decode_value, encode_value
from wirebook.bindings.wire import Bytes, Pair, from_bytes, preview, text_of
from wirebook.bindings.write_checks import check_pairs, text
from wirebook.problems import Problem

PREFIX: Final = "ce-"
NOT_IN_NAME: Final = re.compile(r"[^!#$%&'*+.^_`|~0-9A-Za-z-]|^\Z")  # RFC 9110 token
CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_BLANK: Final = " \t"


def read_headers(parts: WireParts, headers: Sequence[Pair] | None) -> None:
    """Read the content type and the ``ce-`` attributes into `parts`."""
    for name, value in headers or ():
        lower = name.lower()
        if lower[:3] == PREFIX:
            attribute = lower[3:]
            if type(value) is str and PLAIN(value) and attribute in WELL_KNOWN and attribute not in parts.attributes:
                parts.attributes[attribute] = value  # a fast path for common attributes
            else:
                decoded = _decoded(attribute, text_of(value), parts.problems)
                add_attribute(parts.attributes, attribute, decoded, parts.problems)
        elif lower == "content-type":
            set_content_type(parts, text_of(value))


def set_content_type(parts: WireParts, value: str | bytes | None) -> None:
    """Set the content type. If it is set twice, the first one counts, and a different one is reported."""
    if not isinstance(value, str):
        if value is not None:
            parts.problems.append(not_text("datacontenttype", value))
        return
    value = value.strip(_BLANK)
    if parts.content_type is None:
        parts.content_type = value  # Reading: the first of several headers counts
    elif parts.content_type != value:
        expected, actual = preview(parts.content_type), preview(value)
        parts.problems.append(Problem("repeated-attribute", slot="content-type", expected=expected, actual=actual))


def _decoded(name: str, value: str | bytes | None, problems: list[Problem]) -> Any:
    """Decode a value. A value that cannot be decoded is returned unchanged, with a problem."""
    if not isinstance(value, str):
        problems.append(not_text(name, value))
        return value
    try:
        text, is_encoded = decode_value(value)
    except UnicodeDecodeError:
        problems.append(malformed(name, "percent-encoded UTF-8", value))
        return value
    if not is_encoded:
        expected = "printable ASCII, with other characters percent-encoded"
        slot = attribute_slot(preview(name))
        problems.append(Problem("unencoded-header", slot=slot, expected=expected, actual=preview(value)))
    return text


def lines(headers: Sequence[Pair] | None) -> list[tuple[str, str | bytes]]:
    """Return headers as slots: names in lower case, values trimmed. A value that is not valid UTF-8 is bytes."""
    return [(name.lower(), _trimmed(text_of(value))) for name, value in headers or ()]


def _trimmed(value: str | bytes | None) -> str | bytes:
    return value.strip(_BLANK) if isinstance(value, str) else value or b""


# -- writing --------------------------------------------------------------------------------------------------------


def attribute_lines(attributes: dict[str, str]) -> list[Pair]:
    """Return the ``ce-`` headers of attributes. `attributes` are canonical strings."""
    return [(PREFIX + name, encode_value(text)) for name, text in attributes.items()]


def replaced(old: Iterable[tuple[str, Any]] | None, new: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Return `old` and `new`, without the headers of `old` whose names occur in `new`. Names are case-insensitive."""
    added = list(new)
    names = {name.lower() for name, _ in added}
    return [line for line in old or () if line[0].lower() not in names] + added


def wire_lines(pairs: Iterable[tuple[str, str | bytes]]) -> list[tuple[str, Bytes | None]]:
    """Return the pairs of a writer in the form of wire records."""
    return [(name, from_bytes(value) if isinstance(value, bytes) else value) for name, value in pairs]


def check_lines(pairs: Iterable[tuple[str, str | bytes]], section: str = "headers") -> Iterator[Problem]:
    """Check that names are tokens and values have no control characters."""
    yield from check_pairs(section, _check_name, _check_value, {section: pairs})


_check_name: Final = text(NOT_IN_NAME, "a header name of letters, digits and !#$%&'*+.^_`|~-")
_NOT_IN_VALUE: Final = re.compile(
    rf"{CONTROL.pattern}|^[{_BLANK}]|[{_BLANK}]\Z"
)  # RFC 9110, 5.5: receivers trim spaces and tabs
_check_text: Final = text(_NOT_IN_VALUE, "a string without control characters, and without spaces at its ends")


def _check_value(slot: str, value: Any) -> Iterator[Problem]:
    yield from _check_text(slot, value.decode("latin-1") if isinstance(value, bytes) else value)
