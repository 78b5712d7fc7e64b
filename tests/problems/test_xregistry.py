"""The errors of an xRegistry service, held against the texts that define them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from wirebook.problems.xregistry import ERRORS, refused

TEXTS = "spec/xregistry-1.0-rc4/core"
DEFINITION = re.compile(r"^#+ (\w+)\n(.*?)(?=^#+ |\Z|<!-- end)", re.S | re.M)


def defined(text: str) -> dict[str, tuple[int, str]]:
    """Name, status and title of each error of a text."""
    found = {}
    for name, body in DEFINITION.findall(text[text.index("start-err-def") :] if "start-err-def" in text else text):
        code = re.search(r"\* Code: `(\d+)", body)
        title = re.search(r"\* Title: `(.*?)`", body, re.S)
        if code and title:
            found[name] = int(code[1]), " ".join(title[1].split())
    return found


@pytest.mark.parametrize("file", ["spec.md", "http.md"])
def test_names_statuses_and_titles_are_those_of_the_texts(shared: Path, file: str) -> None:
    expected = defined((shared / TEXTS / file).read_text())
    ours = {name: each for name, each in ERRORS.items() if each.text == file}
    assert {name: (each.status, each.title) for name, each in ours.items()} == expected


def test_there_are_sixty_six() -> None:
    assert len(ERRORS) == 66


def test_an_error_says_what_and_about_what() -> None:
    error = refused("mismatched_epoch", "/dirs/d", bad_epoch=9, epoch=1, detail="More.")
    assert error.to_dict() == {
        "type": "https://github.com/xregistry/spec/blob/main/core/spec.md#mismatched_epoch",
        "title": 'The specified epoch value (9) for "/dirs/d" does not match its current value (1).',
        "detail": "More.",
        "subject": "/dirs/d",
        "args": {"bad_epoch": "9", "epoch": "1"},
    }


def test_arguments_must_be_those_of_the_title() -> None:
    with pytest.raises(KeyError, match="mismatched_epoch"):
        refused("mismatched_epoch", "/dirs/d", epoch=1)
