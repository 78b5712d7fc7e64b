"""CloudEvents over NATS: headers since server 2.2; older servers have none, so events are structured JSON.

Attribute `x`, including `datacontenttype`, is the header ``ce-x``, percent-encoded as in HTTP. A ``Content-Type`` of
``application/cloudevents...`` means structured mode. A message without headers may be structured JSON; see
`wirebook.bindings.as_structured`.

Spec: nats-protocol-binding.md; docs/semantics.md D34
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from wirebook.bindings import headers
from wirebook.bindings.cloudevents import Binding, Contents, WireParts, read_parts
from wirebook.bindings.received import Received
from wirebook.bindings.wire import NatsMessage, bytes_of, from_bytes
from wirebook.bindings.write_checks import check_slots, text
from wirebook.problems import Problem

# Reading: "Content-Type of application/cloudevents" means JSON, the only format that the binding has.
BINDING: Final = Binding("NATS", bare_is_json=True)
_NOT_IN_SUBJECT: Final = re.compile(r"[\x00-\x20\x7f*>]|^\Z|^\.|\.\.|\.\Z")


def read(wire: NatsMessage) -> tuple[Received, ...]:
    """Read the message."""
    # Reading: a zero-length payload is no data.
    parts = WireParts(BINDING, wire, bytes_of(wire.data) or None)
    headers.read_headers(parts, wire.headers)
    return read_parts(parts)


def slots(wire: NatsMessage) -> dict[str, Any]:
    """Return the slots: `subject`, `reply-to`, and `headers` as pairs."""
    return {"subject": wire.subject, "reply-to": wire.reply_to, "headers": headers.lines(wire.headers)}


def fill(wire: NatsMessage, contents: Contents) -> NatsMessage:
    """Set the attributes, the content type (``ce-datacontenttype`` for an event) and the data."""
    lines = contents.content_type_line("ce-datacontenttype" if contents.texts else "Content-Type")
    lines = headers.replaced(wire.headers, headers.attribute_lines(contents.texts) + lines)
    return msgspec.structs.replace(wire, headers=lines or None, data=from_bytes(contents.data))


def with_slots(wire: NatsMessage, options: dict[str, Any]) -> tuple[NatsMessage, list[Problem]]:
    """Set protocol slots, named as in `slots`. Headers replace those of the same name."""
    checks = {"subject": _SUBJECT, "reply-to": _SUBJECT}
    problems = [*check_slots(checks, options), *headers.check_lines(options.get("headers", ()))]
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


_SUBJECT: Final = text(_NOT_IN_SUBJECT, "non-empty tokens separated by dots, without spaces, '*' and '>'")
