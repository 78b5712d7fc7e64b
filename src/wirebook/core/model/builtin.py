"""The built-in model: the message, endpoint and schema registries of xRegistry 1.0-rc4."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

from wirebook.core.model.compiled import Model, compile_model
from wirebook.core.model.full import complete


def builtin_model() -> dict[str, Any]:
    """Return the model source, in which includes are expanded, as a new object that the caller may change."""
    text = resources.files("wirebook.core").joinpath("builtin_model.json").read_text(encoding="utf-8")
    source: dict[str, Any] = json.loads(text)
    return source


@cache
def compiled_builtin_model() -> Model:
    """Return the compiled built-in model, with all attributes that the specification defines."""
    return compile_model(complete(builtin_model()))
