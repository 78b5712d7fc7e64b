"""The command `wirebook`: one file per command group, loaded only when its command is called."""

from __future__ import annotations

from wirebook.cli.app import main

__all__ = ["main"]
