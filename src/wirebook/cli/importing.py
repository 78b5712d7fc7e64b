"""`wirebook import`: write catalogues of any version of the specification to a registry, all or nothing.

Spec: docs/registry.md#importing
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from wirebook.catalog.importing import Import, load_import
from wirebook.catalog.upgrade import render_document
from wirebook.cli.documents import render_finding
from wirebook.cli.output import print_json, print_note
from wirebook.cli.sources import check_standard_input, documents_of
from wirebook.core.counting import counted
from wirebook.problems import CODES, Problem, WirebookError
from wirebook.text.pointers import resolve

LOCAL = "the database"


def import_(  # noqa: PLR0917 (options)
    sources: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="The catalogue: files, folders, or - for standard input.")
    ],
    registry: Annotated[str | None, typer.Option("--registry", "--to", help="URL of a Wirebook registry.")] = None,
    database: Annotated[
        str | None,
        typer.Option(
            "--database",
            "--db",
            help="sqlite:///FILE or postgresql://...; a SQLite file must not be in use by a server.",
        ),
    ] = None,
    token_file: Annotated[Path | None, typer.Option(help="File with the bearer token for the registry.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Report what would change, and change nothing.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> int:
    """Import catalogues of any version of the specification into a registry, all or nothing.

    Every automatic correction is reported on standard error.

    Exit codes: 0 imported, 2 the registry rejected the import, or the catalogue cannot be read.
    """
    if (registry is None) == (database is None):
        raise typer.BadParameter("one of --registry and --database is required", param_hint="--registry")
    check_standard_input(file=sources)
    catalogue = load_import(documents_of(sources))
    result = _send(catalogue, registry, database, token_file, dry_run=dry_run)
    diagnostics = [*catalogue.problems, *_placed(result["diagnostics"], catalogue)]
    if json:
        print_json({"diagnostics": [diagnostic.to_dict() for diagnostic in diagnostics], "changed": result["changed"]})
        return 0
    for problem in sorted(
        diagnostics, key=lambda diagnostic: (diagnostic.file or "", diagnostic.line or 0, diagnostic.column or 0)
    ):
        print_note(render_finding(problem))
    entities, notes = counted(len(result["changed"]), "entity", "entities"), counted(len(diagnostics), "note")
    print(f"{'Would import' if dry_run else 'Imported'} {entities} ({notes})")
    return 0


def _send(
    catalogue: Import, registry: str | None, database: str | None, token_file: Path | None, *, dry_run: bool
) -> dict[str, Any]:
    """Send the import and return the response of the registry. Raises: import-refused, with the place in the file"""
    from wirebook.cli.serve import read_token  # noqa: PLC0415
    from wirebook.client.sending import send_import  # noqa: PLC0415

    body = render_document(dict(catalogue.document)).encode("utf-8", "surrogatepass")
    try:
        if registry is not None:
            return send_import(registry, body, token=read_token(token_file), dry_run=dry_run)
        return _import_into_database(str(database), body, dry_run=dry_run)
    except WirebookError as error:
        raise WirebookError(*(_at_its_entity(problem, catalogue) for problem in error.problems)) from None


def _import_into_database(database: str, body: bytes, *, dry_run: bool) -> dict[str, Any]:
    """Import into a database without a server."""
    from wirebook.cli.serve import read_catalogue  # noqa: PLC0415
    from wirebook.client.sending import PATH, read_report  # noqa: PLC0415
    from wirebook.httpapi.http.messages import ApiRequest  # noqa: PLC0415
    from wirebook.httpapi.options import ServerOptions  # noqa: PLC0415
    from wirebook.httpapi.server import open_service  # noqa: PLC0415

    with open_service(ServerOptions(database=database), read_catalogue) as service:
        request = ApiRequest("POST", PATH, "", {"dryrun": [""]} if dry_run else {}, [], body)
        response = service.handle(request)
    assert isinstance(response.body, bytes)
    return read_report(response.status, response.body, LOCAL)


def _at_its_entity(problem: Problem, catalogue: Import) -> Problem:
    """Return the problem with the source position of its entity, if the catalogue contains the entity."""
    pointer = "/".join((problem.xid or "").split("/")[:5])
    if problem.file or not pointer or resolve(dict(catalogue.document), pointer) is None:
        return problem
    return msgspec.structs.replace(catalogue.place(problem.at(pointer=pointer)), pointer=None)


def _placed(diagnostics: list[dict[str, Any]], catalogue: Import) -> list[Problem]:
    """Return what the registry changed, with positions in the files, except changes that were already reported."""
    known_codes = [diagnostic for diagnostic in diagnostics if diagnostic.get("code") in CODES]
    problems = (
        Problem(**{name: value for name, value in diagnostic.items() if name != "severity"})
        for diagnostic in known_codes
    )
    placed = [
        catalogue.place(msgspec.structs.replace(problem, file=None, line=None, column=None)) for problem in problems
    ]
    known = {(problem.code, problem.pointer) for problem in catalogue.problems}
    return [problem for problem in placed if (problem.code, problem.pointer) not in known]
