"""One unmodified server among peers that are the specification, and the set of its possible states."""
