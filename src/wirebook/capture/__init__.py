"""The gateway `wirebook capture`: it receives messages of endpoints and writes them, unchanged, to segments of capture
lines, for sources that cannot be read again.

`endpoints` reads what to receive from the catalogue, `http`, `mqtt`, `amqp`, `nats` and `kafka` receive, `committer`
makes messages durable in groups and `segments` writes them; a message is acknowledged after that. `service` runs all of
it.

Spec: docs/how-to/capture.md; docs/decisions/0194
"""
