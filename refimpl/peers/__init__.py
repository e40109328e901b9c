"""The ports between servers: elections, and the connections of a leader and its learners.

- `election_port`: notifications; `quorum_port`, `quorum_endpoint`, `quorum_socket`: the quorum connections.
- `leader_link`: a learner's connection with its leader; `learners`: a leader's connections with its learners.
- `ports`: what a node asks of them.
"""
