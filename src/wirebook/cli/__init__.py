"""The command `wirebook`: one file per command group, loaded only when its command is called."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from typing import Any, NoReturn

INTERRUPTED = 130


def main(args: Sequence[str] | None = None) -> None:
    """Run one command line and exit: the entry point of `wirebook`.

    Ctrl-C ends the process with one line and without a traceback from the first moment: while modules are imported, the
    process exits at once; a running command is interrupted and cleans up; a second Ctrl-C cuts the cleanup short.
    """
    handled = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not if the parent process ignores SIGINT
    if handled:
        signal.signal(signal.SIGINT, _exit_at_once)
    from wirebook.cli.app import main as run_and_exit  # noqa: PLC0415 (after the signal handler)

    run_and_exit(args, interruptible=handled)


def _exit_at_once(*_: Any) -> NoReturn:
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)


__all__ = ["main"]
