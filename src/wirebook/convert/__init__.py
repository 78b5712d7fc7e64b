"""Converters between messages of client libraries and wire records, one module per library.

    from wirebook.convert import confluent
    outcome = catalog.match(confluent.record_of(message))
    producer.produce(**confluent.arguments_of(catalog.build(...)))

`record_of` converts a message that the library received. `arguments_of` (or `message_of`) returns what its sending
function takes. A part of a message that the library cannot express is an error (``not-expressible``); it is never
omitted. Each library is an extra of the package and imported only by its own module.
"""
