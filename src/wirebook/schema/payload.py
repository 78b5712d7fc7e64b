"""A payload as it was received: raw bytes, or the JSON value that a structured event carries as its `data`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

UNSET = msgspec.UNSET


@dataclass(frozen=True, slots=True)
class Payload:
    """A payload.

    Shape: `raw` bytes, or None and a JSON `value`; `content_type` as stated, None if absent.
    """

    raw: bytes | None
    value: Any = UNSET
    content_type: str | None = None
