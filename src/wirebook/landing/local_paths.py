"""Folders and files named by callers: a path, or a ``file:`` URL."""

from __future__ import annotations

import re
from os import PathLike, fspath
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from wirebook.problems import Problem, WirebookError

__all__ = ["local_path"]

URL: Final = re.compile(r"(?i)file:/|[a-z][a-z0-9+.-]+://")


def local_path(place: str | PathLike[str]) -> Path:
    """The path of a place: itself, or that of a ``file:`` URL. A colon alone makes no URL: ``run:2026`` is a folder.

    Raises: WirebookError (unsupported-store) for any other URL
    """
    text = fspath(place)
    if not isinstance(place, str) or not URL.match(text):
        path = Path(place)
        return path.absolute() if ":" in text else path  # pyarrow takes a relative path with a colon for a URL
    url = urlsplit(text)
    if url.scheme.lower() == "file" and url.netloc.lower() in ("", "localhost"):
        return Path(unquote(url.path))
    message = f"'{_without_password(text)}' is in a store that Wirebook does not read or write: '{url.scheme}'"
    hint = "use a folder of this machine or of a file system that all machines mount, or a file: URL"
    raise WirebookError(Problem("unsupported-store", message, expected="a path or a file: URL", hint=hint))


def _without_password(url: str) -> str:
    return re.sub(r"(?<=://)[^/@]*@", "", url)
