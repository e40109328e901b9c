"""Two-phase commit of a transaction manager and n resource managers, after Gray and Lamport. Run it with

    quorate run "docs/examples/two_phase_commit.py:model(7)"

A message stays in the network once it is sent, so it may arrive any number of times.
"""

from checker.engine import Finding, Kind, Model, Property, Read
from checker.kit import Machine, Network, Reaction, network_model, to_each


def decision(state, source, message):  # arrives at a resource manager
    return Reaction("committed" if message == "commit" else "aborted")


def vote(state, choice):
    return Reaction("aborted") if choice == "abort" else Reaction("prepared", (("tm", "prepared"),))


def prepared(state, source, message):  # arrives at the transaction manager; its state is a set until it decides
    return Reaction(state | {source}) if isinstance(state, frozenset) else None


def model(number: int = 3) -> Model:
    names = [f"rm{n}" for n in range(1, number + 1)]

    def choices(state):
        return () if isinstance(state, tuple) else ("commit", "abort") if len(state) == number else ("abort",)

    def decide(state, choice):
        return Reaction((choice, state), to_each(names, choice))

    def agreement(end):  # a projection that is None says "never": the property is not evaluated there
        reads = tuple(Read(name, lambda state: True if state == end else None) for name in names)
        return Property(f"All{end.title()}", reads, lambda *_: Finding(f"all have {end}"), Kind.SOMETIMES)

    manager = Machine("tm", Reaction(frozenset()), prepared, choices, decide)
    voting = [Machine(name, Reaction("working"), decision, open_votes, vote) for name in names]
    links = [link for name in names for link in ((name, "tm"), ("tm", name))]
    both = Property("Consistent", tuple(Read(name) for name in names), consistent)
    properties, name = [both, agreement("committed"), agreement("aborted")], f"two-phase commit of {number}"
    return network_model(name, [manager, *voting], Network(duplicating=True), links=links, properties=properties)


def open_votes(state):
    return ("prepare", "abort") if state == "working" else ()


def consistent(*states):
    return Finding("one has committed and one has aborted") if {"committed", "aborted"} <= {*states} else None
