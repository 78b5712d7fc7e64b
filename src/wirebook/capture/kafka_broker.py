"""The errors of a Kafka broker, for both clients: Kafka's Java client and confluent-kafka.

Spec: docs/how-to/kafka-stream.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from wirebook.problems import Problem, WirebookError

__all__ = ["ANSWER_SECONDS", "BrokerErrors"]

ANSWER_SECONDS: Final = 15
"""How long to wait for an answer of a broker."""


@dataclass(frozen=True, slots=True)
class BrokerErrors:
    """Creates the errors of a broker that is asked for topics. `settings` are those of Kafka's Java client."""

    topics: Sequence[str]
    settings: Mapping[str, str]

    @property
    def _servers(self) -> str:
        return self.settings["bootstrap.servers"]

    @property
    def _security(self) -> str:
        names = ("security.protocol", "sasl.mechanism")
        return " with ".join(filter(None, map(self.settings.get, names)))

    def unknown_topic(self) -> WirebookError:
        quoted = ", ".join(f"'{topic}'" for topic in self.topics)
        text = f"the broker at {self._servers} does not have the topic {quoted}"
        hint = "create it, or correct 'topic' in the protocoloptions of the endpoint"
        return WirebookError(Problem("unknown-topic", text, hint=hint))

    def no_answer(self) -> WirebookError:
        hint = f"check the addresses, and whether the broker needs TLS; security.protocol is {self._security}"
        return self._unreachable(f"did not answer within {ANSWER_SECONDS} seconds", hint)

    def refused(self, reason: str) -> WirebookError:
        hint = "check the credentials and certificates"
        return self._unreachable(f"refuses the connection ({self._security}): {reason}", hint)

    def unusable(self, reason: str) -> WirebookError:
        return self._unreachable(f"cannot be used: {reason}", None)

    def _unreachable(self, text: str, hint: str | None) -> WirebookError:
        return WirebookError(Problem("broker-unreachable", f"the broker at {self._servers} {text}", hint=hint))
