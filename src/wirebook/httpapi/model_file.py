"""The model that a new registry starts with: the built-in model, none, or the model in a file.

A file may include other files in its folder and below. These includes are expanded here, so that the model source that
the registry stores does not depend on the folder.
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


def initial_model(model: Path | str | bytes | None, fetch: Callable[[str], Any]) -> dict[str, Any]:
    """Return the model source of a new registry: that of a file, of ``empty``, or the built-in one (None).

    Bytes are a model from standard input, which has no folder and so cannot include files. `fetch` returns the
    documents that a model in a file includes from other hosts.

    Raises: unreadable-file, bad-model, model_error, what `read_json` raises
    """
    if model is None:
        return builtin_model()
    if isinstance(model, bytes):
        return _parse(model, "-")
    if model == "empty":
        return {}
    path = Path(model)
    try:
        content = path.read_bytes()
    except OSError as error:
        message = f"cannot read '{path}': {error.strerror}"
        raise WirebookError(Problem("unreadable-file", message, file=str(path))) from None
    source = _parse(content, str(path))
    files = _IncludedFiles(path.resolve().parent, fetch)
    expanded = expand_includes(source, files, path.resolve().as_uri())
    return expanded if files.were_read else source


def _parse(content: bytes, name: str) -> dict[str, Any]:
    """Raises: bad-model, duplicate-member, what `read_json` raises"""
    source = read_json(content, name)
    if duplicates := [problem for problem in source.problems if problem.code == "duplicate-member"]:
        raise WirebookError(*duplicates)
    if not isinstance(source.value, dict):
        raise WirebookError(Problem("bad-model", "the model must be a JSON object", file=name))
    return source.value


class _IncludedFiles:
    """Documents by address: files in a folder and below, and what `fetch` returns."""

    def __init__(self, folder: Path, fetch: Callable[[str], Any]) -> None:
        self._folder, self._fetch, self.were_read = folder, fetch, False

    def __call__(self, address: str) -> Any:
        """Raises: OSError, ValueError"""
        parts = urlsplit(address)
        if parts.scheme != "file":
            return self._fetch(address)
        path = Path(url2pathname(parts.path)).resolve()
        if not path.is_relative_to(self._folder):
            raise ValueError(f"'{path}' is outside of the folder of the model")
        self.were_read = True
        return parse_json(path.read_bytes().removeprefix(BOM_UTF8), max_depth=DEFAULT_LIMITS.depth, strict=True)
