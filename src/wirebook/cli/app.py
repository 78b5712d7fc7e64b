"""The command line as a whole: the table of commands, and what becomes of errors.

Exit codes: 0 done, 1 findings at or above the threshold, 2 cannot run; as in shells, 130 interrupted by Ctrl-C and 141
when the reader of the output goes away (`| head`). A command is a
function with Typer's annotations; the number that it returns, if any, is the exit code.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from wirebook.cli import INTERRUPTED
from wirebook.cli.output import print_note, print_problems, printable
from wirebook.problems import Problem, WirebookError
from wirebook.problems.extras import missing_extra


class Command(NamedTuple):
    """Where a command's function is, and its line in the list of commands."""

    module: str
    function: str
    help: str


COMMANDS: dict[str, Command] = {
    "demo": Command("wirebook.cli.demo", "demo", "Land 200,000 synthesised messages of a shipped catalogue."),
    "init": Command("wirebook.cli.init", "init", "Write a small catalogue and an example message to start from."),
    "match": Command("wirebook.cli.match", "match", "Say which definition each captured message is, and why not."),
    "explain": Command("wirebook.cli.explain", "explain", "Show slot by slot why messages fit or do not."),
    "build": Command("wirebook.cli.build", "build", "Build a message by its definition, or a command that sends it."),
    "transform": Command(
        "wirebook.cli.transform", "transform", "Turn captured messages into those of another definition."
    ),
    "land": Command("wirebook.cli.land", "land", "Land captured messages: a typed table per definition, dead letters."),
    "replay": Command("wirebook.cli.replay", "replay", "Land dead letters that fit a corrected catalogue, each once."),
    "show": Command("wirebook.cli.land", "show", "Show the tables of a target folder and their first rows."),
    "views": Command("wirebook.cli.views", "views", "Print SQL views of the tables, for DuckDB or Spark."),
    "report": Command("wirebook.cli.report", "report", "Write what landed as a page of HTML that needs no network."),
    "lint": Command("wirebook.cli.documents", "lint", "Check catalogue documents and say what is wrong with them."),
    "fmt": Command("wirebook.cli.fmt", "fmt", "Put catalogue documents in canonical order."),
    "schema": Command("wirebook.cli.schema", "schema", "Print a JSON Schema of catalogue documents, for editors."),
    "import": Command("wirebook.cli.importing", "import_", "Import catalogues of any dialect into a registry."),
    "serve": Command("wirebook.cli.serve", "serve", "Serve a registry: catalogues that many share."),
    "registry": Command(
        "wirebook.cli.registry", "registry", "Lock a Resource, or restore the capabilities of a registry."
    ),
    "upgrade": Command("wirebook.cli.documents", "upgrade", "Write a catalogue document as xRegistry 1.0-rc4."),
}

OK, CANNOT_RUN, READER_GONE = 0, 2, 141
_DEBUG = "WIREBOOK_DEBUG"
_MARKUP: Any = "markdown" if sys.stdout.isatty() else None


class LazyGroup(TyperGroup):
    """A group that lists its commands from the table and imports one only when it is called."""

    def __init__(self, **settings: Any) -> None:
        stubs = {name: TyperCommand(name=name, help=command.help) for name, command in COMMANDS.items()}
        super().__init__(**settings | {"commands": stubs})

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, stub, rest = super().resolve_command(ctx, args)
        return name, load_command(name) if name else stub, rest


def load_command(name: str) -> Any:
    """The command itself, with its options or its own commands."""
    command = COMMANDS[name]
    function = getattr(import_module(command.module), command.function)
    if isinstance(function, typer.Typer):
        function.rich_markup_mode = _MARKUP
        return get_command(function)
    single = typer.Typer(add_completion=False, rich_markup_mode=_MARKUP)
    single.command(name)(function)
    return get_command(single)


app = typer.Typer(cls=LazyGroup, rich_markup_mode=_MARKUP, no_args_is_help=True)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"wirebook {version('wirebook')}")
        raise typer.Exit


@app.callback()
def wirebook(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """A message catalogue that runs: describe messages once, recognise them, land them as typed tables.

    Exit codes: 0 done, 1 findings, 2 cannot run, 130 interrupted.
    """


def main(args: Sequence[str] | None = None, *, interruptible: bool = True) -> None:
    """Run one command line and exit. `interruptible` is false where SIGINT is ignored."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    if not os.environ.get(_DEBUG):  # errors have their line already; libraries log them with a traceback as well
        logging.getLogger().addHandler(logging.NullHandler())
    on_interrupt = signal.getsignal(signal.SIGINT)
    if interruptible:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    code = run(args, _interrupts() if interruptible else _never)
    if interruptible:
        signal.signal(signal.SIGINT, (lambda *_: os._exit(code)) if code == INTERRUPTED else on_interrupt)
    sys.exit(code)


def _never() -> bool:
    return False


def _interrupts() -> Callable[[], bool]:
    """A function that returns whether a SIGINT has arrived, whatever its handler made of it."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)

    def has_arrived() -> bool:
        try:
            return signal.SIGINT in os.read(reading, 1 << 16)
        except BlockingIOError:
            return False

    return has_arrived


def run(args: Sequence[str] | None = None, was_interrupted: Callable[[], bool] = _never) -> int:
    """Run one command line; the exit code. An error after `was_interrupted` is a consequence of the interrupt."""
    try:
        result = _call(args)
    except typer.TyperException as error:  # the command line itself is wrong
        return _refuse(error)
    except WirebookError as error:
        _print_traceback()
        if was_interrupted():
            return _interrupted()
        print_problems(map(_with_debug_hint, error.problems))
        return CANNOT_RUN
    except (KeyboardInterrupt, typer.Abort):
        return _interrupted()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left in the buffer goes nowhere
        return READER_GONE
    except Exception as error:
        _print_traceback()
        if was_interrupted():
            return _interrupted()
        missing = missing_extra(error) if isinstance(error, ImportError) else None
        print_problems(missing.problems if missing else [_fault(error)])
        return CANNOT_RUN
    if result == INTERRUPTED:  # Typer turns KeyboardInterrupt into this code
        return _interrupted()
    return result if isinstance(result, int) else OK


def _interrupted() -> int:
    print_note("interrupted")
    return INTERRUPTED


def _call(args: Sequence[str] | None) -> Any:
    """What the command returns, once its output has left."""
    try:
        result = get_command(app).main(args, prog_name="wirebook", standalone_mode=False)
    except SystemExit as error:  # Typer's answer to a broken pipe is code 1, which here means findings
        if isinstance(error.__context__, BrokenPipeError):
            raise error.__context__ from None
        raise
    sys.stdout.flush()
    return result


def _refuse(error: Any) -> int:
    """A command line that cannot be understood: what is wrong, and where help is; no arguments at all: the help."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        print_note(error.format_message())
        return CANNOT_RUN
    name = context.command_path if context else "wirebook"
    print_note(printable(f"{name}: {error.format_message()}"))
    print_note(f"Try '{name} --help' for help.")
    return CANNOT_RUN


def _fault(error: Exception) -> Problem:
    lines = str(error).strip().splitlines()
    what = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    return _with_debug_hint(Problem(code="internal-error", message=what))


def _with_debug_hint(problem: Problem) -> Problem:
    """A fault of Wirebook's own, wherever it happened, with how to see more."""
    if problem.code != "internal-error" or problem.hint:
        return problem
    return replace(problem, hint=f"{_DEBUG}=1 shows where")


def _print_traceback() -> None:
    if os.environ.get(_DEBUG):
        traceback.print_exc()
