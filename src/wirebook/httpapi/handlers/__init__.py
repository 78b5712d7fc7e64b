"""Request handlers: reads, writes, imports, events, and the generated OpenAPI document."""
