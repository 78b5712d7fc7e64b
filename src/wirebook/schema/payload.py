"""A payload as received: raw bytes, or the JSON value in the `data` of a structured event."""

from __future__ import annotations

from typing import Any

import msgspec

UNSET = msgspec.UNSET


class Payload(msgspec.Struct, frozen=True):
    """A payload.

    Shape: `raw` is None if the payload is the JSON value `value`; `content_type` is the declared one, None if absent.
    """

    raw: bytes | None
    value: Any = UNSET
    content_type: str | None = None
