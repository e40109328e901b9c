"""What a client decides that takes part in an election, or waits for a lock, on ordinary znodes.

    events      what a recipe hears, asks for and reports
    names       how places in a queue are named, and ordered
    place       a place in a queue, as a value
    queue       its steps: what fair election, lock, latch and selector have in common
    unfair      election on one ephemeral znode
    election    the official fair election, with an announcement of the leader
    lock        re-entrant, on a place in a queue
    selector    leadership while a procedure runs
    recipes     all of them by name, in one shape

The same functions run in the checker (`checker.models.recipes`) and, with a real client, in `refimpl.recipes`.
"""
