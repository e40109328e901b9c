"""Starts ensembles of real ZooKeeper servers and of our nodes, in any mixture, as processes on this machine.

Rules: servers listen on 127.0.0.1 only; a data directory belongs to a server and not to its kind, so a server may
return as the other kind; every wait is bounded, and its error names the awaited condition; nothing is installed.
"""
