"""The formats of schemas that a registry checks, and the compatibility rules: what its capabilities offer.

`wirebook.schema.validator` checks them. What that stands on takes longer to load than all the rest of a server, and a
server has to say what it offers before it checks anything.

Spec: core/spec.md#compatibility-attribute; schema/spec.md#43-schema-formats.
"""

from __future__ import annotations

from typing import Final

from wirebook.core.model.attributes import COMPATIBILITIES
from wirebook.core.model.capabilities import Offer

FORMATS: Final = ("avro*", "jsonschema*", "jsonstructure*", "protobuf*", "xmlschema*", "xsd*")
OFFER: Final = Offer(dict.fromkeys(FORMATS, COMPATIBILITIES))
