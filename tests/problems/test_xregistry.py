"""The xRegistry error types, compared with the specification."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from wirebook.httpapi.http.messages import error_response
from wirebook.problems import CODES
from wirebook.problems.xregistry import refused

TEXTS = "spec/xregistry-1.0-rc4/core"
DEFINITION = re.compile(r"^#+ (\w+)\n(.*?)(?=^#+ |\Z|<!-- end)", re.S | re.M)


def defined(text: str) -> dict[str, tuple[int, str]]:
    """Name, status and title of each error of a text."""
    errors = {}
    for name, body in DEFINITION.findall(text[text.index("start-err-def") :] if "start-err-def" in text else text):
        code = re.search(r"\* Code: `(\d+)", body)
        title = re.search(r"\* Title: `(.*?)`", body, re.S)
        if code and title:
            errors[name] = int(code[1]), " ".join(title[1].split())
    return errors


@pytest.mark.parametrize("file", ["spec.md", "http.md"])
def test_error_types_equal_those_of_the_specification(shared: Path, file: str) -> None:
    expected = defined((shared / TEXTS / file).read_text())
    ours = {name: type_ for name, type_ in CODES.items() if type_.text == file}
    assert {name: (type_.status, type_.title) for name, type_ in ours.items()} == expected


def test_specification_has_sixty_six_error_types() -> None:
    assert sum(code.text is not None for code in CODES.values()) == 66


def test_error_body_has_type_title_subject_and_arguments() -> None:
    error = refused("mismatched_epoch", "/dirs/d", bad_epoch=9, epoch=1, detail="More.")
    assert json.loads(error_response(error).body) == {
        "type": "https://github.com/xregistry/spec/blob/main/core/spec.md#mismatched_epoch",
        "title": 'The specified epoch value (9) for "/dirs/d" does not match its current value (1).',
        "detail": "More.",
        "subject": "/dirs/d",
        "args": {"bad_epoch": "9", "epoch": "1"},
    }


def test_other_arguments_than_those_of_the_title_are_rejected() -> None:
    with pytest.raises(KeyError, match="mismatched_epoch"):
        refused("mismatched_epoch", "/dirs/d", epoch=1)
