"""What the death of one leader costs, with n clients, by what each of them watches: measured, and counted in the model.

ways      the ways to wait that are compared
model     counts in one run of the model of the checker
client    a client of a live server: the recipe's step function on a socket
crowd     some clients in one loop, and the deaths of their leaders
live      the same on ensembles that run
table     figures as a table, as bars and as JSON
plot      figures as an SVG
command   `python -m benchmarks herd`
"""
