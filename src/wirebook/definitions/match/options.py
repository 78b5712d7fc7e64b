"""Options of matching, for questions that the specifications leave open.

Spec: docs/semantics.md D1, D2, D17, D26, D28
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Literal


@dataclass(frozen=True, slots=True)
class MatchOptions:
    """How messages are matched. The defaults are those of docs/semantics.md.

    `values_imply_presence`: a property with a value is required (D1). `closed`: undeclared properties are mismatches
    (D2). `placeholders`: ``rfc6570`` restricts placeholders in every slot to unreserved characters and percent-encoded
    octets; ``segment`` does not (D17). `match_transport`: properties that may change from hop to hop are compared, too
    (D28). `accept_native`: a message without an envelope can match a CloudEvents definition by its protocol options
    alone (D26). `confluent_prefix`: Confluent's prefix is removed from the values of Kafka records.
    """

    values_imply_presence: bool = True
    closed: bool = False
    placeholders: Literal["segment", "rfc6570"] = "segment"
    match_transport: bool = False
    accept_native: bool = False
    confluent_prefix: bool = False

    def over(self, others: MatchOptions) -> MatchOptions:
        """Return these options, with the values of `others` for options that have their default here."""
        values = {option.name: getattr(self, option.name) for option in fields(self)}
        changed = {name: value for name, value in values.items() if value != getattr(DEFAULT_OPTIONS, name)}
        return replace(others, **changed)


DEFAULT_OPTIONS = MatchOptions()
