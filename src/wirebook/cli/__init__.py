"""The command line `wirebook`: one module per command, imported only when its command runs."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from typing import Any, NoReturn

from wirebook.cli.exit_codes import INTERRUPTED

__all__ = ["main"]


def main(args: Sequence[str] | None = None) -> None:
    """Run one command line and exit. This is the entry point of `wirebook`.

    Ctrl-C always ends the process with one line and without a traceback. During imports the process exits at once. A
    running command is interrupted and cleans up; a second Ctrl-C ends the cleanup.
    """
    handled = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not if the parent process ignores SIGINT
    if handled:
        signal.signal(signal.SIGINT, _exit_at_once)
    from wirebook.cli.app import main as run_and_exit  # noqa: PLC0415 (after the signal handler)

    run_and_exit(args, interruptible=handled)


def _exit_at_once(*_: Any) -> NoReturn:
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)
