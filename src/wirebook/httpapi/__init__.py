"""The HTTP service: an ASGI application, one table of routes, their handlers, and the server that runs them."""
