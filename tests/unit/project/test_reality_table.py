"""The planner against reality: the printed commands as they are read, and the table.

The commands are those that `docs/how-to-check-a-roll-out.md` and the README print.
"""

import socket
from pathlib import Path

from tests.reality.planner import waits_in
from tests.reality.shell import shell
from tests.reality.table import summary

PRINTED = """\
## The steps

Paste this wait:

```
serves() { until echo srvr | nc "$1" "$2" | grep -Eq "Mode: ${3:-(leader|follower)}"; do sleep 1; done; }
```

### Stage 1: add server 4

1. **Check first**: `srvr` shows one `Mode: leader` among servers 1 and 2.

   **Start server 4** with `d`. Wait: `serves zoo4 2181`
2. **Restart server 1** with `d`. Do not wait for it.

### Stage 2: remove server 1

1. **Stop server 1** for good.
2. **Restart server 4** with `d`. Wait: `serves zoo4 2182 observer`
3. **Restart servers 2 and 3** one by one, each with its new file and wait.

```
serves zoo5 2181 standalone
```

## If a step fails

   `serves elsewhere 2181`
"""


def test_a_printed_wait_belongs_to_its_stage_and_server() -> None:
    waits = waits_in(PRINTED)
    assert waits.calls == {(1, 4): "serves zoo4 2181", (2, 4): "serves zoo4 2182 observer"}
    assert waits.last == ["serves zoo5 2181 standalone"]
    assert (waits.of(1, 4), waits.of(3, 4), waits.of(2, 1)) == ("serves zoo4 2181", "serves zoo4 2182 observer", None)
    assert waits.command("serves zoo4 2181").startswith('serves() { until echo srvr | nc "$1" "$2"')


def test_a_command_is_run_with_a_netcat_and_ends_with_its_block(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with shell(f"echo srvr | nc 127.0.0.1 {port} | grep -q Mode", tmp_path) as running:
            connection, _ = server.accept()
            with connection:
                assert connection.recv(100) == b"srvr\n"
                connection.sendall(b"Mode: follower\n")
            assert running.wait(timeout=20) == 0
    with shell("sleep 600", tmp_path) as running:
        pass
    assert running.returncode == -9


def line(number: int, kind: str, outcome: str) -> dict[str, object]:
    fields = {"title": "t", "verdict": "safe (0)", "reason": "r", "seconds": 4.0, "planner_seconds": 1.0}
    return {"number": number, "kind": kind, "route": "plan", "outcome": outcome, **fields}


def test_the_table_counts_the_last_outcome_of_a_change_and_lists_disagreements() -> None:
    lines = [line(1, "a", "agrees"), line(2, "b", "disagrees"), line(2, "b", "agrees"), line(3, "b", "disagrees")]
    text = summary(lines)
    assert "| a | 1 |  |  |  |  |" in text and "| b | 1 | 1 |  |  |  |" in text
    assert "| all | 2 | 1 |  |  |  |" in text and "| plan | 2 | 1 |  |  |  |" in text
    assert "3 changes, 4.0 s each, 1.0 s of it the planner" in text
    assert text.count("- disagrees: ") == 1 and "3. t (plan): safe (0): r" in text
