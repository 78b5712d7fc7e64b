"""Without a library, its converter can be imported, and a call names the extra to install."""

from __future__ import annotations

import importlib
import re
import sys
from typing import Any

import pytest

from wirebook.bindings import Mqtt5Publish
from wirebook.problems import WirebookError

MODULES = ("confluent", "paho", "aiomqtt", "nats", "proton", "cloudevents", "asgi")


@pytest.mark.parametrize("name", MODULES)
def test_converter_is_importable_without_its_library(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("confluent_kafka", "paho", "aiomqtt", "nats", "proton", "cloudevents"):
        monkeypatch.setitem(sys.modules, library, None)
    module = f"wirebook.convert.{name}"
    monkeypatch.delitem(sys.modules, module, raising=False)
    importlib.import_module(module)


@pytest.mark.parametrize(
    ("library", "hint", "call"),
    [
        (
            "paho.mqtt.packettypes",
            r"pip install 'wirebook\[mqtt\]'\Z",
            ("paho", "arguments_of", Mqtt5Publish(topic="t")),
        ),
        (
            "proton",
            r"pip install 'wirebook\[amqp\]'; .* a C compiler and the headers",
            ("proton", "record_of_bytes", b""),
        ),
    ],
)
def test_missing_library_is_named_with_its_extra(
    library: str, hint: str, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    module, function, *arguments = call
    with pytest.raises(WirebookError) as error:
        getattr(importlib.import_module(f"wirebook.convert.{module}"), function)(*arguments)
    (problem,) = error.value.problems
    assert problem.code == "missing-extra"
    assert re.match(hint, str(problem.hint))
