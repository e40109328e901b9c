"""The decisions of a client that takes part in a recipe, such as a lock or an election, on ordinary znodes.

    events      the events, requests and reports of a recipe
    names       the names of places in a queue, and their order
    member      a client's part in a recipe with one holder, as a value
    contest     its steps as far as all these recipes share them
    queue       the steps in a queue, shared by fair election, lock, latch and selector
    transitions the single actions of these steps
    replies     the handling of each reply
    unfair      election on one ephemeral znode
    lock        a re-entrant lock, on a place in a queue
    selector    leadership while a procedure runs
    barrier     a double barrier: clients start together and leave together
    recipes     all of them by name, with one interface

The same functions run in the checker (`checker.models.recipes`) and, with a real client, in `refimpl.recipes`.
"""
