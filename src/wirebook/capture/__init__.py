"""The gateway `wirebook capture` receives the messages of endpoints and writes them to files, for sources that cannot
be read again.

Each message becomes a *capture line*: a JSON record of the message as it was on the wire (docs/capture-format.md). A
*segment* is a file of capture lines, which is never changed once it is complete.

`endpoints` reads from the catalogue what to receive. `http`, `mqtt`, `amqp`, `nats` and `kafka` receive messages.
`committer` collects them in groups, and `segments` writes the groups. A message is acknowledged when it is durable.
`service` runs everything. `jetstream`, `kafka_offsets` and `kafka_broker` are not part of the gateway; `wirebook
stream` uses them.

Spec: docs/how-to/capture.md; docs/decisions/0194
"""
