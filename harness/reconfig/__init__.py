"""Reconfigurations of real servers: what each packet, file and answer is at each step, written into a page of facts."""
