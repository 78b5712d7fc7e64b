"""Exit codes of all commands."""

from __future__ import annotations

from typing import Final

OK: Final = 0
FINDINGS: Final = 1
"""The command ran, and its result does not pass: for example, lint found a problem at or above `--fail-on`."""
CANNOT_RUN: Final = 2
INTERRUPTED: Final = 130
"""Interrupted by Ctrl-C; the same code as in shells."""
READER_GONE: Final = 141
"""The reader of standard output closed it (`| head`); the same code as in shells."""
