"""One unmodified server among peers that are the specification: the states in which it may be, followed online."""
