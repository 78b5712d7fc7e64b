"""The built-in model: the message, endpoint and schema registries of xRegistry 1.0-rc4."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any


def builtin_model() -> dict[str, Any]:
    """Return the model source, without includes, as a new object that the caller may change."""
    text = resources.files("wirebook.core").joinpath("builtin_model.json").read_text(encoding="utf-8")
    source: dict[str, Any] = json.loads(text)
    return source
