"""Converters between messages of client libraries and wire records, one module per library.

    from wirebook.convert import confluent
    outcome = catalog.match(confluent.record_of(message))
    producer.produce(**confluent.arguments_of(catalog.build(...)))

`record_of` converts a message that the library received to a wire record. `arguments_of` or `message_of` converts a
wire record to the arguments of the library's sending function. A part of a message that the library cannot express is
an error (``not-expressible``); it is never omitted. Each library is an optional extra, imported only by its own module.
"""
