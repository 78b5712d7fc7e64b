"""Preconditions: the headers If-Match and If-None-Match, compared with what a GET of the same URL gives.

A write evaluates them in its transaction, so that nothing comes between the comparison and the change. The headers
If-Modified-Since and If-Unmodified-Since are ignored, since no answer has Last-Modified.

Spec: RFC 9110#13; docs/registry.md#conditional-requests; docs/decisions/0151-conditional-writes.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from wirebook.httpapi.http.etags import quoted
from wirebook.httpapi.http.messages import Incoming
from wirebook.problems.xregistry import Refused, refused

IF_MATCH, IF_NONE_MATCH = "if-match", "if-none-match"
NAMES: Final = {IF_MATCH: "If-Match", IF_NONE_MATCH: "If-None-Match"}
ELEMENT: Final = re.compile(r'[ \t]*((?:W/)?"[\x21\x23-\x7e\x80-\xff]*")?[ \t]*(?:,|\Z)')
SHOWN: Final = 200
"""Characters of a header that an error repeats."""


class Representation(NamedTuple):
    """What a GET gives. `tag` is its entity tag, without quotes, if it has one."""

    tag: str | None


def has_preconditions(incoming: Incoming) -> bool:
    return any(name in NAMES for name, _ in incoming.headers)


def check_read(incoming: Incoming, tag: str | None) -> None:
    """If-Match of a GET that has an answer with `tag`; its If-None-Match never is an error.

    Raises: precondition_failed, header_error
    """
    if (sent := _tags(incoming, IF_MATCH)) is not None and not _is_matched(sent, Representation(tag)):
        raise _failed(incoming, IF_MATCH, tag)


def check_write(incoming: Incoming, find: Callable[[], Representation | None]) -> None:
    """All preconditions of a write; `find` gives what a GET gives now, None if there is nothing.

    Raises: precondition_failed, header_error
    """
    if not has_preconditions(incoming):
        return
    matching, unknown = _tags(incoming, IF_MATCH), _tags(incoming, IF_NONE_MATCH)
    found = find()
    if found is None and incoming.method == "DELETE":
        return  # it is 404 with or without preconditions, which then do not count (RFC 9110#13.2.1)
    tag = found.tag if found else None
    if matching is not None and not _is_matched(matching, found):
        raise _failed(incoming, IF_MATCH, tag, is_there=found is not None)
    if unknown is not None and _is_known(unknown, found):
        raise _failed(incoming, IF_NONE_MATCH, tag)


def _tags(incoming: Incoming, name: str) -> list[str] | None:
    """The entity tags of a header, `*` as the only one for any; None without the header. Raises: header_error"""
    text = incoming.joined(name)
    if text is None or text.strip() == "*":
        return None if text is None else ["*"]
    tags, at = [], 0
    while at < len(text):
        found = ELEMENT.match(text, at)
        if found is None:
            why = f"'{text[:SHOWN]}' is not * or a list of entity tags such as \"1a2b\""
            raise refused("header_error", incoming.path, name=NAMES[name], error_detail=why)
        tags += [found[1]] if found[1] else []
        at = found.end()
    return tags


def _is_matched(sent: list[str], found: Representation | None) -> bool:
    """By the strong comparison: a weak tag matches nothing."""
    if found is None or sent == ["*"]:
        return found is not None
    return found.tag is not None and any(quoted(found.tag, packed=packed) in sent for packed in (False, True))


def _is_known(sent: list[str], found: Representation | None) -> bool:
    """By the weak comparison."""
    return _is_matched([each.removeprefix("W/") for each in sent], found)


def _failed(incoming: Incoming, name: str, tag: str | None, *, is_there: bool = True) -> Refused:
    if tag is not None:
        now = f"the current entity tag is {quoted(tag, packed=False)}"
    else:
        now = "the current representation has no entity tag" if is_there else "there is nothing at this URL"
    sent = (incoming.joined(name) or "")[:SHOWN]
    detail = f"{NAMES[name]} is {sent}, and {now}. Read it again before you repeat the request."
    return refused("precondition_failed", incoming.path, detail=detail, header=NAMES[name])
