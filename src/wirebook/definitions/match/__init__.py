"""Match messages: find the definition of a message, its placeholder values and its problems."""
