"""Request handlers: entities, collections, documents, settings, imports, exports, events and the OpenAPI document."""
