"""The client port: connections, sessions and four-letter words, around the decisions of `spec.service`.

- `client_port.ClientPort`: connections, sessions, limits, and the listening sockets.
- `backend`: the interface between the port and the core of the node, in both directions.
- `channel`, `connection`, `final_processor`: the transport of one client, its requests, and their answers.
- `settings`: the keys of zoo.cfg for the port. `four_letter_words`: their answers. `statistics`: figures.
- `auth`: the users of SASL, and the demanded schemes. `read_only`: the service of a server without a quorum.

A module knows those below it in this order: `backend`, `channel`, `connection`, `final_processor`, `four_letter_words`,
`client_port`. A lower one sees a higher one through a protocol that it defines itself.
"""

from refimpl.clients.backend import Backend, ServerStatus
from refimpl.clients.client_port import ClientPort
from refimpl.clients.settings import ClientSettings

__all__ = ["Backend", "ClientPort", "ClientSettings", "ServerStatus"]
