"""`wirebook schema`: a JSON Schema of catalogue documents, for editors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from wirebook.catalog.document_schema import document_schema
from wirebook.cli.documents import write_whole


def schema(
    output: Annotated[Path | None, typer.Option(help="File to write. Default: standard output.")] = None,
) -> None:
    """Print a JSON Schema of catalogue documents, so that editors complete names and underline mistakes.

    The schema covers JSON and YAML catalogues. `wirebook lint` checks more: references, templates, payload schemas.
    """
    write_whole(json.dumps(document_schema(), indent=2, ensure_ascii=False) + "\n", output)
