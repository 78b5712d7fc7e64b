"""Normalize timestamps, so that equal times are equal strings.

Spec: core/spec.md#data-types.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

TIMESTAMP: Final = re.compile(r"(\d{4})(-\d\d-\d\d[Tt]\d\d:\d\d:\d\d)(?:\.(\d+))?([Zz]|[+-]\d\d:\d\d)?\Z", re.ASCII)
TIMESTAMP_IN_WORDS: Final = "a timestamp of RFC 3339, for example 2030-12-19T06:00:00Z"


def normal_timestamp(text: str) -> str | None:
    """Return the timestamp in UTC with at most nine fractional digits and no trailing zeros; None for any other text.

    The format is RFC 3339, except that the core specification only recommends an offset: a time without one is UTC.
    """
    return _remembered_timestamp(text) if len(text) <= USUAL else _normal_timestamp(text)


def _normal_timestamp(text: str) -> str | None:
    match = TIMESTAMP.match(text)
    if not match:
        return None
    year, rest, fraction, zone = match.groups()
    # Python has no year 0. The calendar repeats every 400 years, so each year is mapped to one of 2000-2399.
    shift = 2000 + int(year) % 400 - int(year)
    is_utc = zone is None or zone in "Zz"
    try:
        moment = datetime.fromisoformat(f"{int(year) + shift}{rest}{'+00:00' if is_utc else zone}")
    except ValueError:
        return None
    if not is_utc:
        moment = moment.astimezone(UTC)
        year, rest = f"{moment.year - shift:04}", f"{moment:-%m-%dT%H:%M:%S}"
        if not 0 <= moment.year - shift <= 9999:
            return None
    digits = (fraction or "")[:9].rstrip("0")
    return f"{year}{rest.upper()}{'.' + digits if digits else ''}Z"


USUAL: Final = len("2026-01-01T00:00:00.123456789+00:00")
"""Maximum length of timestamps that are cached."""

_remembered_timestamp: Final = lru_cache(maxsize=1024)(_normal_timestamp)  # all entities of a request share one time
