"""Line templates: a message is built once, with markers in place of the values that vary, and then filled many times.

The builder (`wirebook.definitions.build.builder`) decides what a message looks like. Filling a template costs a
hundredth of building a message.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec
import orjson

from wirebook.bindings import to_line
from wirebook.bindings.wire import KafkaRecord
from wirebook.bindings.write import WriteMode
from wirebook.definitions.build.builder import BuildRequest, build
from wirebook.definitions.compile.definition import Definition
from wirebook.problems import WirebookError
from wirebook.schema import Payload

TIME: Final = "1999-12-31T23:59:59Z"
RECEIVED: Final = "1999-12-31T23:59:58Z"
OFFSET: Final = 1_999_999_999
DATA: Final = "ZZdataZZ"
SEVERITY, WAVE = 1_999_999_998, 1_999_999_997  # an integer cannot contain a text marker
_FIXED: Final = {
    TIME: "time",
    RECEIVED: "received",
    str(OFFSET): "offset",
    str(SEVERITY): "severity",
    str(WAVE): "wave",
}


def marker(name: str) -> str:
    """Return the text that marks a value in the built message. It is valid in every slot and occurs nowhere else."""
    return f"ZZ{name}ZZ"


class LineTemplate:
    """A capture line of a definition's message, with gaps for the values.

    Shape: `fill` takes values for the placeholders of the definition, for `attributes` and `properties` (names to
    markers, or to constants), and for ``id``, ``time``, ``received``, ``offset`` and ``data``.
    """

    def __init__(
        self,
        definition: Definition,
        *,
        endpoint: str,
        mode: WriteMode | None = None,
        attributes: Mapping[str, Any] | None = None,
        properties: Mapping[str, Any] | None = None,
        content_type: str | None = None,
    ) -> None:
        self.structured = mode == "structured"
        payload = Payload(None, DATA) if self.structured else Payload(DATA.encode(), content_type=content_type)
        event = {"id": marker("id"), "time": TIME} if definition.is_cloudevent else {}
        context = {name: marker(name) for name in definition.placeholders}
        request = BuildRequest(context, payload, {**event, **(attributes or {})}, properties or {}, mode=mode)
        built = build(definition, request)
        if built.errors or built.wire is None:
            raise WirebookError(*built.errors)
        wire = msgspec.structs.replace(built.wire, endpoint=endpoint, received=RECEIVED)
        if isinstance(wire, KafkaRecord):
            wire = msgspec.structs.replace(wire, partition=0, offset=OFFSET, timestamp=TIME)
        self._parts, self._gaps = _split(to_line(wire).decode())

    def fill(self, values: Mapping[str, str], data: bytes | None) -> bytes:
        """Return a line of the capture format. Values must not need escapes in JSON."""
        parts = self._parts.copy()
        for place, name in self._gaps:
            parts[place] = values[name] if name != "data" else self._data(data)
        return "".join(parts).encode()

    def _data(self, data: bytes | None) -> str:
        """Return the payload as JSON: a string, base64 if it is not UTF-8, or null; escaped inside an event."""
        if self.structured:
            return orjson.dumps((data or b"null").decode()).decode()[1:-1]
        if data is None:
            return "null"
        try:
            return orjson.dumps(data.decode()).decode()
        except UnicodeDecodeError:
            return msgspec.json.encode({"base64": data}).decode()


_GAP: Final = re.compile("|".join((rf'\\?"{DATA}\\?"', r"ZZ\w+?ZZ", *_FIXED)))


def _split(line: str) -> tuple[list[str], list[tuple[int, str]]]:
    """Split the line at its markers. Return the parts, and the positions and names of the gaps."""
    parts: list[str] = []
    gaps: list[tuple[int, str]] = []
    end = 0
    for gap in _GAP.finditer(line):
        parts += [line[end : gap.start()], gap[0]]
        name = _FIXED.get(gap[0]) or gap[0].strip('\\"')[2:-2]
        gaps.append((len(parts) - 1, name))
        end = gap.end()
    return [*parts, line[end:]], gaps
