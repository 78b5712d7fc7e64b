"""Read plain files of CloudEvents in the JSON format. They have no wire record, and therefore no protocol slots (D28).

Spec: docs/capture-format.md#plain-cloudevents; json-format.md
"""

from __future__ import annotations

from wirebook.bindings.cloudevents import bounded, event_kind
from wirebook.bindings.json_event import JsonEvent, NotAnEvent, read_batch, read_event
from wirebook.bindings.received import CLOUDEVENTS, Mode, Received

_BLANK = b" \t\r\n"
_BOM = b"\xef\xbb\xbf"


def read_events(text: bytes) -> tuple[Received, ...]:
    """Read the messages of a JSON text: an object is one event, an array is a batch, blank text has no messages."""
    start = text.removeprefix(_BOM).lstrip(_BLANK)[:1]
    if not start:
        return ()
    mode: Mode = "batch" if start == b"[" else "structured"
    try:
        events = read_batch(text) if mode == "batch" else [read_event(text)]
    except NotAnEvent as error:
        events = [JsonEvent({}, None, [error.problem])]
    return tuple(
        Received(
            protocol=CLOUDEVENTS,
            wire=None,
            kind=event_kind(event.problems),
            mode=mode,
            attributes=event.attributes,
            payload=event.payload,
            problems=bounded(event.problems),
            index=index,
        )
        for index, event in enumerate(events)
    )
