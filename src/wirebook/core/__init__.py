"""Layer `core`: xRegistry semantics. Pure: no HTTP, SQL, clock, environment or logging."""
