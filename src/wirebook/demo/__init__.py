"""A demonstration: a catalogue of a made-up company, and traffic as it would have it."""
