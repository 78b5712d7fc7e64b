"""Message definitions and endpoints: normalize, resolve, compile, lint, match, build and explain."""
