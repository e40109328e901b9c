"""The cost of one leader's death with n clients, for several ways to watch: measured, and counted in the model.

strategies    the strategies to wait that are compared
model         counts in one run of the model of the checker
client        a client of a live server: the recipe's step function on a socket
client_group  several clients in one loop, and the deaths of their leaders
live          the measurement on running ensembles
table         figures as a table, as bars and as JSON
plot          figures as an SVG
__main__      `python -m research.herd`
"""
