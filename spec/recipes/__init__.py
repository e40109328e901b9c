"""The decisions of a client that takes part in an election, or waits for a lock, on ordinary znodes.

    events      the events, requests and reports of a recipe
    names       the names of places in a queue, and their order
    place       a place in a queue, as a value
    queue       its steps, shared by fair election, lock, latch and selector
    moves       the single actions of these steps
    answers     the handling of each reply
    unfair      election on one ephemeral znode
    lock        a re-entrant lock, on a place in a queue
    selector    leadership while a procedure runs
    recipes     all of them by name, with one interface

The same functions run in the checker (`checker.models.recipes`) and, with a real client, in `refimpl.recipes`.
"""
