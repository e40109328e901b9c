"""The operating system as one server sees it: its clocks, files, sockets and threads.

- `calls`: `System`, the calls, and `system`, the system of the server whose code runs.
"""

from refimpl.system.calls import SYSTEM, System, system

__all__ = ["SYSTEM", "System", "system"]
