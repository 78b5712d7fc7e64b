"""NATS by nats-py (extra ``nats``): from `nats.aio.msg.Msg`, and to arguments of `Client.publish`.

outcome = catalog.match(record_of(message))
await client.publish(**arguments_of(catalog.build(...)))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebook.bindings import AnyMessage, NatsMessage, bytes_of, from_bytes
from wirebook.convert.checks import check_headers, not_expressible, of_protocol, required

if TYPE_CHECKING:
    from nats.aio.msg import Msg

NAME = "nats-py"


def record_of(message: Msg) -> NatsMessage:
    """Return the record of a received message."""
    headers = [(name, value) for name, value in (message.headers or {}).items()]
    return NatsMessage(
        subject=message.subject,
        reply_to=message.reply or None,
        headers=headers or None,  # type: ignore[arg-type]
        data=from_bytes(message.data),
    )


def arguments_of(wire: AnyMessage) -> dict[str, Any]:
    """Return the arguments of `Client.publish`. Its headers are a dict of trimmed strings, so names must be unique.

    Raises: WirebookError (``not-expressible``, ``missing-required``)
    """
    message = of_protocol(wire, NAME, NatsMessage)
    return {
        "subject": required(NAME, "protocoloptions.subject", message.subject),
        "payload": bytes_of(message.data) or b"",
        "reply": message.reply_to or "",
        "headers": _headers(message) or None,
    }


def _headers(wire: NatsMessage) -> dict[str, str]:
    check_headers(wire.headers, NAME)
    headers: dict[str, str] = {}
    for name, value in wire.headers or ():
        slot = f"protocoloptions.headers.{name}"
        if name in headers:
            raise not_expressible(NAME, slot, "present once", "twice")
        if not isinstance(value, str) or value != value.strip():
            raise not_expressible(
                NAME, slot, "a string without leading or trailing blanks", value if isinstance(value, str) else "bytes"
            )
        headers[name] = value
    return headers
