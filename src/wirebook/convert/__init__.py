"""Converters: the objects of client libraries to wire records and back, one module for each library.

    from wirebook.convert import confluent
    outcome = catalog.match(confluent.record_of(message))
    producer.produce(**confluent.arguments_of(catalog.build(...)))

Rule: `record_of` takes what the library hands to an application, `arguments_of` (or `message_of`) gives what its
sending function takes. What a library has no way to say is a problem (``not-expressible``), never left out. A library
is imported only by its own module; each is an extra of the package.
"""
