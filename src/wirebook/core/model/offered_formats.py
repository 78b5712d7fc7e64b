"""The schema formats and compatibility rules that a registry offers.

`wirebook.schema.validator` implements them. They are listed here so that a server can announce its capabilities without
importing the validator, whose libraries take longer to load than the rest of the server.

Spec: core/spec.md#compatibility-attribute; schema/spec.md#43-schema-formats.
"""

from __future__ import annotations

from typing import Final

from wirebook.core.model.attributes import COMPATIBILITIES
from wirebook.core.model.capabilities import Offer

FORMATS: Final = ("avro*", "jsonschema*", "jsonstructure*", "protobuf*", "xmlschema*", "xsd*")
OFFER: Final = Offer(dict.fromkeys(FORMATS, COMPATIBILITIES))
