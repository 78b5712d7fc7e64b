"""The schema formats and compatibility rules that a registry offers.

`wirebook.schema.validator` implements them. They are listed here because its libraries take longer to load than the
rest of a server, which must announce its capabilities before it validates anything.

Spec: core/spec.md#compatibility-attribute; schema/spec.md#43-schema-formats.
"""

from __future__ import annotations

from typing import Final

from wirebook.core.model.attributes import COMPATIBILITIES
from wirebook.core.model.capabilities import Offer

FORMATS: Final = ("avro*", "jsonschema*", "jsonstructure*", "protobuf*", "xmlschema*", "xsd*")
OFFER: Final = Offer(dict.fromkeys(FORMATS, COMPATIBILITIES))
