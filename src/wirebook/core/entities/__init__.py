"""Write requests: changes of Groups, Resources, Versions and metas, and the checks at the end of a request."""
