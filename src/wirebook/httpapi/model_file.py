"""The model that a registry is made with: the built-in one, none, or that of a file.

A file may include others in its folder and below. They are put in place here, so that the source of the model can be
sent back to the registry, which does not know the folder.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from wirebook.core.model.builtin import builtin_model
from wirebook.core.model.source import expand_includes
from wirebook.problems import Problem, WirebookError
from wirebook.text.json import parse_json
from wirebook.text.json_documents import read_json
from wirebook.text.source import DEFAULT_LIMITS

Fetch = Callable[[str], Any]


def first_model(model: Path | str | bytes | None, fetch: Fetch) -> dict[str, Any]:
    """The source of the model that a new registry begins with: of a file, ``empty``, or (None) the built-in one.

    A model as bytes comes from standard input. It belongs to no folder, so it cannot include files.

    Raises: unreadable-file, bad-model, what `read_json` raises (WirebookError), Refused
    """
    if model is None:
        return builtin_model()
    if isinstance(model, bytes):
        return _parse(model, "-")
    return {} if model == "empty" else _of_file(Path(model), fetch)


def _of_file(path: Path, fetch: Fetch) -> dict[str, Any]:
    source = _read(path)
    files = _Files(path.resolve().parent, fetch)
    expanded = expand_includes(source, files, path.resolve().as_uri())
    return expanded if files.were_read else source


def _read(path: Path) -> dict[str, Any]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise WirebookError(
            Problem("unreadable-file", f"cannot read '{path}': {error.strerror}", file=str(path))
        ) from None
    return _parse(data, str(path))


def _parse(data: bytes, name: str) -> dict[str, Any]:
    source = read_json(data, name)
    if duplicates := [problem for problem in source.problems if problem.code == "duplicate-member"]:
        raise WirebookError(*duplicates)
    if not isinstance(source.value, dict):
        raise WirebookError(Problem("bad-model", "a model must be a JSON object", file=name))
    return source.value


class _Files:
    """Documents at addresses: files in a folder and below, and what `fetch` gets."""

    def __init__(self, folder: Path, fetch: Fetch) -> None:
        self._folder, self._fetch, self.were_read = folder, fetch, False

    def __call__(self, address: str) -> Any:
        """Raises: OSError, ValueError"""
        parts = urlsplit(address)
        if parts.scheme != "file":
            return self._fetch(address)
        path = Path(url2pathname(parts.path)).resolve()
        if not path.is_relative_to(self._folder):
            raise ValueError(f"'{path}' is outside of the model's folder")
        self.were_read = True
        return parse_json(path.read_bytes().removeprefix(BOM_UTF8), max_depth=DEFAULT_LIMITS.depth, strict=True)
