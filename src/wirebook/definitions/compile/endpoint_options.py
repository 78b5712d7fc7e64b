"""The names of endpoint options, by protocol.

Spec: endpoint/spec.md#protocol-options.
"""

from __future__ import annotations

from typing import Final

COMMON: Final = ("endpoints", "authorization", "deployed")
_MQTT: Final = ("topic", "topicfilter", "qos", "retain", "willtopic", "willmessage")

OPTIONS: Final[dict[str, tuple[str, ...]]] = {
    "HTTP": (
        *COMMON, "method", "headers", "query", "apikeyname", "apikeyin", "plainscheme", "plainusernamefield",
        "plainpasswordfield",
    ),
    "AMQP/1.0": (
        *COMMON, "node", "durable", "link-properties", "connection-properties", "distribution-mode",
        "connection-capabilities", "node-capabilities", "source-filters", "dynamic", "terminus-durability",
        "expiry-policy", "timeout", "sender-settle-mode", "receiver-settle-mode",
    ),
    "MQTT/3.1.1": (*COMMON, *_MQTT, "cleansession"),
    "MQTT/5.0": (
        *COMMON, *_MQTT, "cleanstart", "sessionexpiryinterval", "sharedsubscriptiongroup", "nolocal",
        "retainaspublished", "retainhandling",
    ),
    "KAFKA": (
        *COMMON, "topic", "acks", "key", "partition", "consumergroup", "headers", "keyserializer", "valueserializer",
        "autooffsetreset", "enableautocommit",
    ),
    "NATS": (*COMMON, "subject", "subjectfilter", "queuegroup"),
}  # fmt: skip
# Renamed options whose meaning differs slightly, which is reported (docs/catalogues.md#dialects).
CHANGED: Final[dict[str, dict[str, str]]] = {"MQTT/5.0": {"cleansession": "cleanstart"}}
# The option before 1.0-rc3, which had one name for both directions, and the filter that subscribers have since.
FILTERS: Final[dict[str, tuple[str, str]]] = {
    "MQTT/3.1.1": ("topic", "topicfilter"),
    "MQTT/5.0": ("topic", "topicfilter"),
    "NATS": ("subject", "subjectfilter"),
}
KAFKA_SECURITY: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
