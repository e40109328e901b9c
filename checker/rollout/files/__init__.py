"""What the files of servers say beside the members: their keys, ports and handshakes, and what differs between two.

keys         the effect of each key, by its value
differences  the keys that differ between two files of a server; the files during an interrupted roll-out
listeners    the ports that a server listens on
handshakes   which servers refuse each other's connections
"""
