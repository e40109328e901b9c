"""The planner against reality: the printed commands as they are read, and the table.

The commands are those that `docs/how-to-check-a-roll-out.md` and the README print.
"""

from __future__ import annotations

from tests.reality.planner import Wait, waits_in
from tests.reality.table import summary

PRINTED = """\
## The steps

### Stage 1 of 2: add server 4

1. **Check first**: `srvr` shows one `Mode: leader` among servers 1 and 2.

   **Start server 4** with `d`. Wait:
   `until echo srvr | nc zoo4 2181 | grep -Eq 'Mode: (leader|follower)'; do sleep 1; done`
2. **Restart server 1** with `d`. Do not wait for it.

### Stage 2 of 2: remove server 1

1. **Stop server 1** for good.
2. **Restart server 4** with `d`. Wait:
   `until echo srvr | nc zoo4 2182 | grep -Eq 'Mode: observer'; do sleep 1; done`

```
until echo srvr | nc zoo5 2181 | grep -Eq 'Mode: standalone'; do sleep 1; done
```

## If a step fails

   `until echo srvr | nc elsewhere 2181 | grep -Eq 'Mode: observer'; do sleep 1; done`
"""


def test_a_printed_wait_belongs_to_its_stage_and_server() -> None:
    waits, last = waits_in(PRINTED)
    assert waits == {
        (1, 4): Wait("zoo4", 2181, "Mode: (leader|follower)"),
        (2, 4): Wait("zoo4", 2182, "Mode: observer"),
    }
    assert last == [Wait("zoo5", 2181, "Mode: standalone")]


def line(number: int, kind: str, outcome: str) -> dict[str, object]:
    told = {"title": "t", "verdict": "safe (0)", "reason": "r", "seconds": 4.0, "planner_seconds": 1.0}
    return {"number": number, "kind": kind, "route": "plan", "outcome": outcome, **told}


def test_the_table_counts_the_last_outcome_of_a_change_and_lists_disagreements() -> None:
    lines = [line(1, "a", "agrees"), line(2, "b", "disagrees"), line(2, "b", "agrees"), line(3, "b", "disagrees")]
    text = summary(lines)
    assert "| a | 1 |  |  |  |  |" in text and "| b | 1 | 1 |  |  |  |" in text
    assert "| all | 2 | 1 |  |  |  |" in text and "| plan | 2 | 1 |  |  |  |" in text
    assert "3 changes, 4.0 s each, 1.0 s of it the planner" in text
    assert text.count("- disagrees: ") == 1 and "3. t (plan): safe (0): r" in text
