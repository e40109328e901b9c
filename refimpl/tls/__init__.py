"""TLS: the keys of zoo.cfg for clients and for other servers, and ports that accept TLS and plain connections."""
