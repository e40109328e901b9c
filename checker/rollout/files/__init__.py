"""The keys, ports and handshakes in the files of servers, and the differences between two files.

keys         the effect of each key, by its value; the ports that a server listens on, and the servers that refuse each
             other's connections
differences  the keys that differ between two files of a server; the files during an interrupted roll-out
"""
