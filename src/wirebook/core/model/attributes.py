"""Limits and fixed values of attributes that the specification defines outside the model.

Spec: core/spec.md#attributes-and-extensions, #compatibility-attribute; core/model.md#registry-model.
"""

from __future__ import annotations

import re
from typing import Final

ATTRIBUTE_NAME: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}\Z")
ATTRIBUTE_NAME_IN_WORDS: Final = "1 to 63 of a-z 0-9 _, the first not a digit"
KEY_NAME: Final = re.compile(r"[a-z0-9][a-z0-9:_.-]{0,62}\Z")
MAX_BYTES: Final = 4096  # name and value of a scalar attribute together
RESERVED_VERSIONS: Final = ("null", "request")
COMPATIBILITIES: Final = (
    "backward", "backward_transitive", "forward", "forward_transitive", "full", "full_transitive",
)  # fmt: skip
