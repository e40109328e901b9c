"""Times for servers whose clients are to lose nothing but what a test takes away from them.

A machine that is busy may leave a process out for seconds. With ticks of 200 ms a session would end after 4 s, whatever
its client has asked for, a follower be given up after 2 s, and kazoo drop a connection whose ping is answered 1.3 s
late. No test that uses these times waits for one of them to pass: sessions are closed, connections cut, servers killed.
"""

from typing import Any

SESSION = 30.0
"""What a client asks for, in seconds, and what these servers grant."""
LONG_LIMITS = {"syncLimit": "20", "maxSessionTimeout": "60000"}
"""Keys of a `zoo.cfg` by which a machine that stands still for some seconds costs no leader and no session, whatever
the tick. The limit is no larger since some tests wait until a server gives up another one."""
PATIENT: dict[str, Any] = {"tick_time": 1000, "extra": {"extendedTypesEnabled": "true", "maxSessionTimeout": "60000"}}
