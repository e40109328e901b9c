"""A run under kills: clients write and read while servers are killed, and their history must be linearizable."""
