"""The table of commands, the conversion of errors to messages, and the exit code.

Exit codes: 0 done, 1 findings at or above the threshold, 2 cannot run, 130 interrupted by Ctrl-C, 141 standard output
was closed by its reader (`| head`). A command is a function with Typer's annotations; it returns its exit code, or None
for 0.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any, NamedTuple

import msgspec
import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from wirebook.cli.exit_codes import CANNOT_RUN, INTERRUPTED, OK, READER_GONE
from wirebook.cli.memory import keep_memory_flat
from wirebook.cli.output import print_note, print_problems, printable
from wirebook.problems import Problem, WirebookError
from wirebook.problems.extras import missing_extra


class Command(NamedTuple):
    """A command: its `module` and `function`, and `help`, its line in the list of commands. `is_continuous` is true if
    the command lands messages until it is stopped."""

    module: str
    function: str
    help: str
    is_continuous: bool = False


COMMANDS: dict[str, Command] = {
    "demo": Command("wirebook.cli.demo", "demo", "Generate 200,000 messages and land them as typed tables."),
    "init": Command("wirebook.cli.init", "init", "Write a small catalogue and an example message to start from."),
    "match": Command(
        "wirebook.cli.match", "match", "Show which definition each captured message matches, or why none."
    ),
    "explain": Command("wirebook.cli.explain", "explain", "Show slot by slot why a message matches or does not."),
    "build": Command("wirebook.cli.build", "build", "Build a message from its definition, or a command that sends it."),
    "transform": Command("wirebook.cli.transform", "transform", "Convert captured messages to another definition."),
    "land": Command("wirebook.cli.land", "land", "Land captured messages as a typed table per definition."),
    "capture": Command("wirebook.cli.capture", "capture", "Receive messages of endpoints and write them as captures."),
    "stream": Command(
        "wirebook.cli.stream",
        "stream",
        "Land messages of Kafka and NATS JetStream as they arrive.",
        is_continuous=True,
    ),
    "replay": Command("wirebook.cli.replay", "replay", "Land dead letters that match a corrected catalogue."),
    "show": Command("wirebook.cli.land", "show", "Show the tables of a target folder and their first rows."),
    "views": Command("wirebook.cli.views", "views", "Print SQL views of the tables, for DuckDB or Spark."),
    "status": Command("wirebook.cli.status", "status", "Show what the last batches did, and which run is writing."),
    "maintain": Command("wirebook.cli.maintain", "maintain", "Compact tables and delete what no reader needs."),
    "report": Command("wirebook.cli.report", "report", "Write an HTML report about the messages that landed."),
    "lint": Command("wirebook.cli.documents", "lint", "Check catalogue documents and report problems."),
    "fmt": Command("wirebook.cli.fmt", "fmt", "Put catalogue documents in canonical order."),
    "schema": Command("wirebook.cli.schema", "schema", "Print a JSON Schema of catalogue documents, for editors."),
    "import": Command("wirebook.cli.importing", "import_", "Import catalogues of any dialect into a registry."),
    "serve": Command("wirebook.cli.serve", "serve", "Serve a registry of shared catalogues over HTTP."),
    "registry": Command(
        "wirebook.cli.registry", "registry", "Lock a Resource, or restore the capabilities of a registry."
    ),
    "upgrade": Command("wirebook.cli.documents", "upgrade", "Write a catalogue document as xRegistry 1.0-rc4."),
}

_DEBUG = "WIREBOOK_DEBUG"
_MARKUP: Any = "markdown" if sys.stdout.isatty() else None


class LazyGroup(TyperGroup):
    """A group that lists its commands from the table and imports a command only when it runs."""

    def __init__(self, **settings: Any) -> None:
        stubs = {name: TyperCommand(name=name, help=command.help) for name, command in COMMANDS.items()}
        super().__init__(**settings | {"commands": stubs})

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, stub, rest = super().resolve_command(ctx, args)
        return name, load_command(name) if name else stub, rest


def load_command(name: str) -> Any:
    """Import a command and return it with its options or subcommands."""
    command = COMMANDS[name]
    if command.is_continuous:
        keep_memory_flat()
    function = getattr(import_module(command.module), command.function)
    if isinstance(function, typer.Typer):
        function.rich_markup_mode = _MARKUP
        return get_command(function)
    single = typer.Typer(add_completion=False, rich_markup_mode=_MARKUP)
    single.command(name)(function)
    return get_command(single)


app = typer.Typer(cls=LazyGroup, rich_markup_mode=_MARKUP, no_args_is_help=True)


def _print_version(requested: bool) -> None:
    if requested:
        print(f"wirebook {version('wirebook')}")
        raise typer.Exit


@app.callback()
def wirebook(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Describe your messages once; check real traffic against the descriptions and land it as typed tables.

    Exit codes: 0 done, 1 findings, 2 cannot run, 130 interrupted.
    """


def main(args: Sequence[str] | None = None, *, interruptible: bool = True) -> None:
    """Run one command line and exit. `interruptible` is false where SIGINT is ignored."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    if not os.environ.get(_DEBUG):  # the command prints errors in one line; do not log them with a traceback, too
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
    """Return a function that reports whether a SIGINT arrived since its last call, even if a handler swallowed it."""
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
    """Run one command line and return its exit code. An error after an interrupt is reported as the interrupt."""
    try:
        result = _call(args)
    except typer.TyperException as error:  # the command line itself is wrong
        return _print_usage_error(error)
    except WirebookError as error:
        _print_traceback()
        if was_interrupted():
            return _interrupted()
        print_problems(map(_with_debug_hint, error.problems))
        return CANNOT_RUN
    except (KeyboardInterrupt, typer.Abort):
        return _interrupted()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # discard the rest of the buffer
        return READER_GONE
    except Exception as error:
        _print_traceback()
        if was_interrupted():
            return _interrupted()
        missing = missing_extra(error) if isinstance(error, ImportError) else None
        print_problems(missing.problems if missing else [_internal_error(error)])
        return CANNOT_RUN
    if result == INTERRUPTED:  # Typer turns KeyboardInterrupt into this code
        return _interrupted()
    return result if isinstance(result, int) else OK


def _interrupted() -> int:
    print_note("interrupted")
    return INTERRUPTED


def _call(args: Sequence[str] | None) -> Any:
    """Run the command, flush its output and return its result."""
    try:
        result = get_command(app).main(args, prog_name="wirebook", standalone_mode=False)
    except SystemExit as error:  # Typer exits with 1 on a broken pipe; 1 means findings here
        if isinstance(error.__context__, BrokenPipeError):
            raise error.__context__ from None
        raise
    sys.stdout.flush()
    return result


def _print_usage_error(error: Any) -> int:
    """Print what is wrong with the command line and how to get help. Without arguments, print the help."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        print_note(error.format_message())
        return CANNOT_RUN
    name = context.command_path if context else "wirebook"
    print_note(printable(f"{name}: {error.format_message()}"))
    print_note(f"Try '{name} --help' for help.")
    return CANNOT_RUN


def _internal_error(error: Exception) -> Problem:
    lines = str(error).strip().splitlines()
    message = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    return _with_debug_hint(Problem("internal-error", message))


def _with_debug_hint(problem: Problem) -> Problem:
    """Add a hint to an internal error: how to print its traceback."""
    if problem.code != "internal-error" or problem.hint:
        return problem
    return msgspec.structs.replace(problem, hint=f"set {_DEBUG}=1 to print a traceback")


def _print_traceback() -> None:
    if os.environ.get(_DEBUG):
        traceback.print_exc()
