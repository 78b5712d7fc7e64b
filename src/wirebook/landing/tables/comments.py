"""Column comments: the descriptions in payload schemas, and the meaning of Wirebook's own columns.

Spec: docs/how-to/table-settings.md#comments
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import pyarrow as pa

__all__ = ["OWN", "comment_text", "with_comments"]

MAX_COMMENT: Final = 1000
OWN: Final = {
    "_file": "File, topic and partition, or stream of the message",
    "_source_file": "File, topic and partition, or stream of the message",
    "_line": "Line (from 1), offset or sequence number of the message",
    "_index": "Position of the event in its batch (from 0)",
    "_received": "When the message was received",
    "_endpoint": "XID of the endpoint of the message",
    "_protocol": "Protocol of the message",
    "_catalogue": "Fingerprint of the catalogue that the message was matched with",
    "_tombstone": "Whether the message is a Kafka record with a null value",
    "_rest": "Payload values that have no column or do not fit theirs, as JSON",
    "ce_rest": "CloudEvents attributes that have no column or do not fit theirs, as JSON",
}
ATTRIBUTE: Final = "ce_"
PLACEHOLDER: Final = "ctx_"


def comment_text(text: str) -> str:
    """Convert a description to a comment: one line of at most `MAX_COMMENT` characters."""
    words = " ".join(text.split())
    return words if len(words) <= MAX_COMMENT else f"{words[: MAX_COMMENT - 1]}…"


def with_comments(schema: pa.Schema, descriptions: Mapping[str, str], key: bytes) -> pa.Schema:
    """The columns with comments as field metadata under `key`. `descriptions` maps names of columns to their
    descriptions in the payload schema."""
    return _with_comments(schema, tuple(descriptions.items()), key)


@lru_cache(maxsize=64)  # many tables have the same columns
def _with_comments(schema: pa.Schema, descriptions: tuple[tuple[str, str], ...], key: bytes) -> pa.Schema:
    by_name = dict(descriptions)
    return pa.schema([_commented(field, by_name.get(field.name), key) for field in schema])


def _commented(field: pa.Field, description: str | None, key: bytes) -> pa.Field:
    comment = description or OWN.get(field.name)
    if comment is None and field.name.startswith(ATTRIBUTE):
        comment = f"CloudEvents attribute '{field.name.removeprefix(ATTRIBUTE)}'"
    if comment is None and field.name.startswith(PLACEHOLDER):
        comment = f"Value of the placeholder '{field.name.removeprefix(PLACEHOLDER)}'"
    return field.with_metadata({key: comment.encode()} if comment else None)
