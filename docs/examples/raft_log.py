"""The model of the Raft in raft_servers.py, and the meaning of the lines that it logs.

quorate validate s1.jsonl s2.jsonl s3.jsonl --model docs/examples/raft_log.py:model --events events
"""

import raft

from checker.kit import UNLIMITED, Event, Events

FIELDS = ("term", "role", "voted", "log", "commit")


def model():
    """Raft with faults that no budget limits: the log has as many as it has."""
    return raft.model(UNLIMITED, UNLIMITED, UNLIMITED, partitions=0, losses=UNLIMITED)


def line(fields):
    """The step that a line reports."""
    server, event = fields["server"], fields["event"]
    after = {server: {name: fields[name] for name in FIELDS if name in fields}}
    if event == "got":
        return Event("deliver", (fields["from"], server, {"class": fields["message"]}), after)
    return Event({"start": "restart"}.get(event, event), (server,), after)


events = Events(line, hidden=("lose",), time="time")


def outcome(fields):
    """The same for a reader of the lines about elections and commits alone."""
    if fields["event"] != "got":
        return line(fields)
    if "commit" in fields or fields.get("role") == "leader":
        return line(fields)
    return None


outcomes = Events(outcome, hidden=("deliver",), time="time")
