"""Reconfigurations of real servers: the packets, files and answers at each step, for a page of facts."""
