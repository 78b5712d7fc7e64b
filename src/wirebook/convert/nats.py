"""NATS by nats-py (extra ``nats``): `nats.aio.msg.Msg`, and what `Client.publish` takes.

outcome = catalog.match(record_of(message))
await client.publish(**arguments_of(catalog.build(...)))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebook.bindings import AnyMessage, NatsMessage, bytes_of, from_bytes
from wirebook.convert.refusal import needed, refuse, require, require_lines

if TYPE_CHECKING:
    from nats.aio.msg import Msg

NAME = "nats-py"


def record_of(message: Msg) -> NatsMessage:
    """The message that was received."""
    headers = [(name, value) for name, value in (message.headers or {}).items()]
    return NatsMessage(
        subject=message.subject,
        reply_to=message.reply or None,
        headers=headers or None,  # type: ignore[arg-type]
        data=from_bytes(message.data),
    )


def arguments_of(wire: AnyMessage) -> dict[str, Any]:
    """What `Client.publish` takes.

    Raises: WirebookError (``not-expressible``: headers are a dict of texts there, trimmed; ``missing-required``).
    """
    require(wire, NAME, NatsMessage)
    assert isinstance(wire, NatsMessage)
    return {
        "subject": needed(NAME, "protocoloptions.subject", wire.subject),
        "payload": bytes_of(wire.data) or b"",
        "reply": wire.reply_to or "",
        "headers": _headers(wire) or None,
    }


def _headers(wire: NatsMessage) -> dict[str, str]:
    require_lines(wire.headers, NAME)
    found: dict[str, str] = {}
    for name, value in wire.headers or ():
        slot = f"protocoloptions.headers.{name}"
        if name in found:
            raise refuse(NAME, slot, "there once", "twice")
        if not isinstance(value, str) or value != value.strip():
            raise refuse(NAME, slot, "a text without blanks at its ends", value if isinstance(value, str) else "bytes")
        found[name] = value
    return found
