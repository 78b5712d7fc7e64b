"""Layer `client`: reading an xRegistry server over HTTP."""
