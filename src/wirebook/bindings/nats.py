"""CloudEvents over NATS: headers with servers from 2.2 on, and the older structured JSON without headers.

Rules: attribute `x` is the header ``ce-x``, percent-encoded as in HTTP, `datacontenttype` too; a ``Content-Type`` of
``application/cloudevents...`` says structured. A message without headers may be structured JSON: nothing on the wire
says so, `wirebook.bindings.as_structured` looks.

Spec: nats-protocol-binding.md; docs/semantics.md D34
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from wirebook.bindings import headers
from wirebook.bindings.cloudevents import Binding, Contents, WireParts, read_parts
from wirebook.bindings.received import Received
from wirebook.bindings.wire import NatsMessage, bytes_of, from_bytes
from wirebook.bindings.write_checks import check_slots, text
from wirebook.problems import Problem

# Reading: "Content-Type of application/cloudevents" means JSON here, the one format that the binding knows.
BINDING: Final = Binding("NATS", bare_is_json=True)
_NOT_IN_SUBJECT: Final = re.compile(r"[\x00-\x20\x7f*>]|^\Z|^\.|\.\.|\.\Z")


def read(wire: NatsMessage) -> tuple[Received, ...]:
    # Reading: a zero-length payload is no data.
    parts = WireParts(BINDING, wire, bytes_of(wire.data) or None)
    headers.read_headers(parts, wire.headers)
    return read_parts(parts)


def slots(wire: NatsMessage) -> dict[str, Any]:
    """`subject`, `reply-to`, and `headers` as lines."""
    return {"subject": wire.subject, "reply-to": wire.reply_to, "headers": headers.lines(wire.headers)}


def fill(wire: NatsMessage, contents: Contents) -> NatsMessage:
    """`wire` with these attributes, content type and data; of an event the content type is ``ce-datacontenttype``."""
    lines = contents.content_type_line("ce-datacontenttype" if contents.texts else "Content-Type")
    lines = headers.replaced(wire.headers, headers.attribute_lines(contents.texts) + lines)
    return msgspec.structs.replace(wire, headers=lines or None, data=from_bytes(contents.data))


def with_slots(wire: NatsMessage, options: dict[str, Any]) -> tuple[NatsMessage, list[Problem]]:
    """`wire` with protocol slots set: the same names as in `slots`; headers replace those of the same name."""
    problems = list(_check(options))
    if problems:
        return wire, problems
    changes: dict[str, Any] = {}
    if "subject" in options:
        changes["subject"] = options["subject"]
    if "reply-to" in options:
        changes["reply_to"] = options["reply-to"]
    if "headers" in options:
        changes["headers"] = headers.replaced(wire.headers, headers.wire_lines(options["headers"]))
    return msgspec.structs.replace(wire, **changes), []


_SUBJECT: Final = text(_NOT_IN_SUBJECT, "tokens between dots, without blanks, '*' and '>'")


def _check(options: dict[str, Any]) -> Iterator[Problem]:
    yield from check_slots({"subject": _SUBJECT, "reply-to": _SUBJECT}, options)
    yield from headers.check_lines(options.get("headers", ()))
