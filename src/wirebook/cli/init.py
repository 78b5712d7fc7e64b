"""`wirebook init`: write a first catalogue and an example message."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from wirebook.catalog.formatting import in_canonical_order, render
from wirebook.catalog.starter import CONTEXT, DATA, ENVELOPES, FORMATS, MESSAGE, NONE, PROTOCOLS, starter_catalog
from wirebook.cli.documents import write_whole
from wirebook.cli.output import print_note, suggestion
from wirebook.problems import Problem, WirebookError

CATALOG_FILE: Final = "orders.xreg.json"
CAPTURE_FILE: Final = "orders.jsonl"


def init(
    folder: Annotated[Path, typer.Argument(metavar="[FOLDER]", help="The folder; created if missing.")] = Path(),
    *,
    protocol: Annotated[str | None, typer.Option(help=f"One of {', '.join(PROTOCOLS)}.")] = None,
    envelope: Annotated[str | None, typer.Option(help=f"One of {', '.join(ENVELOPES)}.")] = None,
    format: Annotated[str | None, typer.Option(help=f"Payload format: one of {', '.join(FORMATS)}.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing; use the first choice of each option.")] = False,
) -> None:
    """Write a small catalogue that passes lint, and an example message that matches it.

    Asks for the protocol, the envelope and the payload format unless they are set. Existing files are never replaced.
    """
    chosen_protocol = _choice("protocol", protocol, PROTOCOLS, yes)
    chosen_envelope = _choice("envelope", envelope, ENVELOPES, yes)
    chosen_format = _choice("format", format, FORMATS, yes)
    if chosen_protocol == chosen_envelope == NONE:
        message = "a definition needs an envelope or a protocol to match messages; both are 'none'"
        raise typer.BadParameter(f"{message}; choose a protocol, or the envelope CloudEvents/1.0")
    catalog, capture = folder / CATALOG_FILE, folder / CAPTURE_FILE
    for path in (catalog, capture):
        if path.exists():
            hint = "choose another folder, or delete the file"
            raise WirebookError(Problem("unwritable-file", f"'{path}' already exists", file=str(path), hint=hint))
    document = starter_catalog(chosen_protocol, chosen_envelope, chosen_format)
    line = _example(document, None if chosen_format == NONE else DATA, "HTTP" if chosen_protocol == NONE else None)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"the folder '{folder}' cannot be created: {error.strerror}"
        raise WirebookError(Problem("unwritable-file", message, file=str(folder))) from None
    write_whole(render(in_canonical_order(document)), catalog)
    write_whole(line + "\n", capture)
    print(f"wrote {catalog}: the catalogue, with one message definition")
    print(f"wrote {capture}: a message that matches it")
    print_note(f"Next: wirebook lint {catalog}")
    print_note(f"      wirebook match {capture} --catalog {catalog}")


def _choice(name: str, value: str | None, choices: tuple[str, ...], yes: bool) -> str:
    """Return the value of an option, the answer to its prompt, or with --yes the first choice."""
    if value is None and yes:
        return choices[0]
    if value is None and not sys.stdin.isatty():
        message = f"--{name} is required, because standard input is not a terminal: {', '.join(choices)}"
        raise typer.BadParameter(f"{message}. With --yes it is {choices[0]}.")
    while value is None:
        answer: str = typer.prompt(f"{name.capitalize()} ({', '.join(choices)})", default=choices[0])
        value = _known(answer, choices)
    known = _known(value, choices)
    if known is None:
        hint = suggestion(value.upper(), choices)
        message = f"--{name} '{value}' is not one of {', '.join(choices)}"
        raise typer.BadParameter(f"{message}; {hint}" if hint else message)
    return known


def _known(text: str, choices: tuple[str, ...]) -> str | None:
    return next((choice for choice in choices if choice.casefold() == text.strip().casefold()), None)


def _example(document: dict[str, object], data: object, protocol: str | None) -> str:
    """Return the example message as a line of the capture format."""
    from wirebook.bindings import to_line  # noqa: PLC0415 (imported once the options are known to be good)
    from wirebook.catalog import Catalog  # noqa: PLC0415

    return to_line(Catalog.load(document).build(MESSAGE, CONTEXT, data, protocol=protocol)).decode()
