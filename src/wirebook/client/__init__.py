"""Clients of xRegistry servers: reading a registry, and importing into one."""
