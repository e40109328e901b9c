"""Times for servers whose clients lose nothing except by an action of the test.

A busy machine may not run a process for seconds. With ticks of 200 ms a session would end after 4 s, whatever timeout
its client requests, a follower would be given up after 2 s, and kazoo would drop a connection whose ping is answered
after 1.3 s. No test with these times waits for one of them: sessions are closed, connections cut, servers killed.
"""

from typing import Any

SESSION = 30.0
"""The session timeout that a client requests, in seconds, and that these servers grant."""
LONG_LIMITS = {"syncLimit": "20", "maxSessionTimeout": "60000"}
"""Keys of a `zoo.cfg` that let a server pause for some seconds without the loss of a leader or session, for any tick.

The limit is not larger because some tests wait until a server gives up another one.
"""
PATIENT: dict[str, Any] = {"tick_time": 1000, "extra": {"extendedTypesEnabled": "true", "maxSessionTimeout": "60000"}}
