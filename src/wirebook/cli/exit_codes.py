"""Exit codes of all commands."""

from __future__ import annotations

from typing import Final

OK: Final = 0
FINDINGS: Final = 1
"""The command ran, and its result is below the threshold that was requested."""
CANNOT_RUN: Final = 2
INTERRUPTED: Final = 130
"""Ctrl-C, as in shells."""
READER_GONE: Final = 141
"""The reader of standard output closed it (`| head`), as in shells."""
