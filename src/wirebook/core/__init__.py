"""Layer `core`: the semantics of xRegistry. Pure: no HTTP, SQL, clock, environment or logging."""
