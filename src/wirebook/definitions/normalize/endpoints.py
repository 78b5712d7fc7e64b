"""Normalise endpoints: rewrite every known spelling and place of attributes and options to 1.0-rc4.

Spec: docs/catalogues.md#dialects; endpoint/spec.md; endpoint-1.0-rc2.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from wirebook.definitions.compile.endpoint_options import CHANGED, FILTERS, KAFKA_SECURITY, OPTIONS
from wirebook.definitions.normalize import names
from wirebook.definitions.normalize.message_options import by_name, lift, rename_options
from wirebook.definitions.normalize.messages import (
    Roots,
    drop_server_attributes,
    normalise_identity,
    normalise_messages,
    normalise_origin,
    normalise_reference,
    normalise_selectors,
    report_reference,
)
from wirebook.definitions.normalize.preview import preview
from wirebook.definitions.normalize.rewriting import RewriteCursor, RewrittenEntity

# Maps members of `config` (0.5) to protocol options.
CONFIG_PLACES: Final = {
    "endpoints": "endpoints",
    "options": "options",
    "strict": "deployed",
    "deployed": "deployed",
    "authorization": "authorization",
}
BOOTSTRAP: Final = "bootstrap.servers"
SECURITY: Final = "security.protocol"
# Known names of the server addresses of Kafka. The name in 1.0-rc4 comes first.
KAFKA_ADDRESSES: Final = (BOOTSTRAP, "bootstrapservers", "bootstrap_servers", "bootstrapServers", "uri", "url")
# Protocol options that some samples have in the endpoint itself.
TOP_LEVEL_OPTIONS: Final = ("endpoints", "deployed", "options", "authorization")


def normalise_endpoint(entity: RewrittenEntity, key: str, roots: Roots) -> None:
    """Normalise an endpoint with its messages."""
    normalise_identity(entity, "endpointid", key)
    normalise_origin(entity)
    drop_server_attributes(entity)
    _spread_config(entity)
    for name in TOP_LEVEL_OPTIONS:
        if name in entity.values:
            entity.move(name, "protocoloptions")
    normalise_selectors(entity, keep_precision=True)
    usage = entity.values.get("usage")
    if isinstance(usage, str):
        message = f"'usage' must be an array; write [\"{preview(usage)}\"]"
        entity.report("old-shape", entity.at("usage"), message, expected=[usage], actual=usage)
        entity.values["usage"] = [usage]
    deprecated = entity.values.get("deprecated")
    if isinstance(deprecated, dict) and "docs" in deprecated:
        deprecated = entity.values["deprecated"] = dict(deprecated)
        place = RewriteCursor(entity, entity.at("deprecated"))
        rename_options(deprecated, ("documentation",), {"docs": "documentation"}, place)
    _normalise_options(entity, roots)
    _normalise_groups(entity, roots)
    entity.rename("definitions", "messages", "old-collection-name")
    normalise_messages(entity, roots)


# -- misplaced attributes ---------------------------------------------------------------------------------------------


def _spread_config(entity: RewrittenEntity) -> None:
    """Move the members of `config` (0.5): `protocol` to the endpoint, the rest to its protocol options."""
    config = entity.inner("config")
    if config is None:
        return
    if "protocol" in config:
        source = entity.log.source_of(entity.at("config", "protocol"))
        protocol, own = config.pop("protocol"), entity.values.get("protocol")
        if isinstance(protocol, str) and isinstance(own, str):
            is_same = names.canonical_protocol(protocol) == names.canonical_protocol(own)
            protocol = own if is_same else protocol
        entity.put(entity.values, entity.at("protocol"), protocol, source, old="config.protocol", new="protocol")
    for name, option in CONFIG_PLACES.items():
        if name in config:
            entity.move(name, "protocoloptions", option, config, entity.at("config", name))
    if not config:
        del entity.values["config"]


# -- attributes -----------------------------------------------------------------------------------------------------


def _normalise_groups(entity: RewrittenEntity, roots: Roots) -> None:
    """Normalise `messagegroups` to an array of XIDs, or of URIs for groups in other registries."""
    for old in ("definitionGroups", "definitiongroups", "messageGroups"):
        entity.rename(old, "messagegroups", "old-collection-name")
    groups = entity.values.get("messagegroups")
    if groups is None:
        return
    if isinstance(groups, str):
        message = f"'messagegroups' must be an array; write [\"{preview(groups)}\"]"
        entity.report("old-shape", entity.at("messagegroups"), message, expected=[groups], actual=groups)
        groups = [groups]
    if not isinstance(groups, list) or not all(isinstance(group, str) for group in groups):
        message = f"'messagegroups' must be an array of strings; found '{preview(groups)}'"
        entity.report("wrong-shape", entity.at("messagegroups"), message, expected="an array of strings", actual=groups)
        del entity.values["messagegroups"]
        return
    entity.values["messagegroups"] = [
        _group_reference(entity, index, group, roots) for index, group in enumerate(groups)
    ]


def _group_reference(entity: RewrittenEntity, index: int, group: str, roots: Roots) -> str:
    reference = names.canonical_reference(group, roots)
    if ":/" not in reference and not reference.startswith("/"):
        reference = f"/messagegroups/{reference}"
    if reference != group:
        report_reference(entity, entity.at("messagegroups", index), group, reference)
    return reference


# -- protocol options -----------------------------------------------------------------------------------------------


def _normalise_options(entity: RewrittenEntity, roots: Roots) -> None:
    options = entity.inner("protocoloptions")
    if options is None:
        return
    protocol = entity.values.get("protocol", "")
    place = RewriteCursor(entity, entity.at("protocoloptions"))
    lift(options, "options", place)
    rename_options(options, OPTIONS.get(protocol, ()), {}, place)
    for old, new in CHANGED.get(protocol, {}).items():
        _change(options, old, new, place)
    _use_filter(entity, options, protocol, place)
    _normalise_authorization(options, place.inside("authorization"))
    _normalise_addresses(options, protocol, place.inside("endpoints"))
    _normalise_pairs(options, protocol, place)
    normalise_reference(entity, options, "willmessage", entity.at("protocoloptions", "willmessage"), roots)


def _change(options: dict[str, Any], old: str, new: str, place: RewriteCursor) -> None:
    if old not in options:
        return
    is_new = new not in options
    place.rename(options, old, new)
    if is_new:
        message = f"'{old}' became '{new}' in MQTT 5, which applies to the start of the session only; check the value"
        place.inside(new).report("changed-meaning", message, expected=new, actual=old)


def _use_filter(entity: RewrittenEntity, options: dict[str, Any], protocol: str, place: RewriteCursor) -> None:
    """Rename the topic or subject of an endpoint that only receives messages to the filter of 1.0-rc4."""
    usage = entity.values.get("usage")
    receives = isinstance(usage, list) and "producer" not in usage and {"subscriber", "consumer"} & set(map(str, usage))
    if receives and protocol in FILTERS:
        old, new = FILTERS[protocol]
        if old in options and new not in options:
            place.rename(options, old, new)


def _normalise_authorization(options: dict[str, Any], place: RewriteCursor) -> None:
    """Normalise `authorization` to an array of objects; in 0.5 and 1.0-rc2 it is one object."""
    entries = options.get("authorization")
    if isinstance(entries, dict):
        message = "'authorization' must be an array of objects; the object was read as an array with one member"
        place.report("old-shape", message, expected="an array")
        place.inside(0).record_origin(place.source)
        entries = [entries]
    if isinstance(entries, list):
        options["authorization"] = [_authorization(entry, place.inside(index)) for index, entry in enumerate(entries)]


def _authorization(item: Any, place: RewriteCursor) -> Any:
    if not isinstance(item, dict) or "grant_types" not in item:
        return item
    item = dict(item)
    rename_options(item, ("granttypes",), {}, place)
    return item


def _normalise_addresses(options: dict[str, Any], protocol: str, place: RewriteCursor) -> None:
    """Normalise `endpoints` to an array of objects with ``uri``, or with ``bootstrap.servers`` for Kafka."""
    addresses = options.get("endpoints")
    if isinstance(addresses, (str, dict)):
        message = "'endpoints' must be an array of objects; the value was read as an array with one member"
        place.report("old-shape", message, expected="an array")
        place.inside(0).record_origin(place.source)
        addresses = [addresses]
    if isinstance(addresses, list):
        options["endpoints"] = [_address(item, protocol, place.inside(index)) for index, item in enumerate(addresses)]


def _address(item: Any, protocol: str, place: RewriteCursor) -> Any:
    if protocol == "KAFKA":
        return _kafka_address(item, place)
    if isinstance(item, str):
        message = f'an address must be an object; write {{"uri": "{preview(item)}"}}'
        place.report("old-shape", message, expected={"uri": item}, actual=item)
        place.inside("uri").record_origin(place.source)
        return {"uri": item}
    if isinstance(item, dict) and "url" in item:
        item = dict(item)
        rename_options(item, ("uri",), {"url": "uri"}, place)
    return item


def _kafka_address(item: Any, place: RewriteCursor) -> Any:
    """Split ``SSL://a:9092,b:9092`` into two servers and a security protocol (docs/catalogues.md#dialects)."""
    entry = {"uri": item} if isinstance(item, str) else item
    name = next((name for name in KAFKA_ADDRESSES if isinstance(entry, dict) and name in entry), None)
    if name is None or (name == BOOTSTRAP and isinstance(entry[name], list)):
        return item
    addresses = entry[name]
    texts = addresses if isinstance(addresses, list) else [addresses]
    if not all(isinstance(text, str) for text in texts):
        return item
    urls = [url.strip().rpartition("://") for text in texts for url in text.split(",")]
    servers = [server for _, _, server in urls if server]
    source = place if isinstance(item, str) else place.inside(name)
    message = f"Kafka addresses are written as 'bootstrap.servers', an array of 'host:port'; read as {preview(servers)}"
    source.report("old-shape", message, expected={BOOTSTRAP: servers}, actual=addresses)
    place.inside(BOOTSTRAP).record_origin(source.source)
    changed = {BOOTSTRAP if key == name else key: servers if key == name else value for key, value in entry.items()}
    for scheme in dict.fromkeys(scheme.upper() for scheme, _, _ in urls if scheme.upper() in KAFKA_SECURITY):
        if SECURITY not in changed:
            changed[SECURITY] = scheme
            place.inside(SECURITY).record_origin(source.source)
        elif str(changed[SECURITY]).upper() != scheme:
            message = f"the scheme '{scheme}' differs from '{SECURITY}', '{preview(changed[SECURITY])}', which is used"
            source.report("conflicting-names", message, expected=changed[SECURITY], actual=scheme)
    return changed


def _normalise_pairs(options: dict[str, Any], protocol: str, place: RewriteCursor) -> None:
    """Convert headers to an array (HTTP) or a map (Kafka), and query parameters to a map."""
    if protocol == "HTTP" and isinstance(headers := options.get("headers"), dict):
        inner = place.inside("headers")
        for index, source in enumerate([inner.inside(name).source for name in headers]):
            inner.inside(index).record_origin(source)
            inner.inside(index).inside("value").record_origin(source)
        options["headers"] = [{"name": name, "value": value} for name, value in headers.items()]
        message = "HTTP 'headers' must be an array of objects with 'name' and 'value'; the map was converted"
        place.inside("headers").report("old-shape", message, expected="an array")
    for name in {"HTTP": ("query",), "KAFKA": ("headers",)}.get(protocol, ()):
        if isinstance(pairs := options.get(name), list) and all(isinstance(item, dict) for item in pairs):
            message = f"{protocol} '{name}' must be a map; the array was converted"
            place.inside(name).report("old-shape", message, expected="a map")
            options[name] = by_name(list(_named_values(pairs, place.inside(name))), place.inside(name))


def _named_values(pairs: list[dict[str, Any]], place: RewriteCursor) -> Iterator[tuple[str, Any, str]]:
    """Yield (name, value, source pointer) of each entry, and report what a map cannot contain."""
    for index, item in enumerate(pairs):
        entry, name = place.inside(index), item.get("name")
        if not isinstance(name, str):
            message = f"an entry must be an object with 'name' and 'value'; found '{preview(item)}', which is ignored"
            entry.report("wrong-shape", message, expected="an object with 'name'", actual=item)
            continue
        for member in [member for member in item if member not in ("name", "value")]:
            message = f"'{preview(member)}' is ignored: the map contains the value of '{preview(name)}' only; remove it"
            entry.inside(member).report("dropped-attribute", message, actual=item[member])
        yield name, item.get("value"), (entry.inside("value") if "value" in item else entry).source
