"""The client port: connections, sessions and four-letter words, around the decisions of `spec.service`.

- `client_port.ClientPort`: the port, and the interface for the core of the node.
- `backend.Backend`: the interface that the core implements.
- `channel`, `connection`, `final_processor`: the transport of one client, its requests, and their answers.
- `turns`: the bound on requests in one turn of the event loop.
- `settings`, `tls`: the keys of zoo.cfg for the port. `four_letter_words`: their answers. `statistics`: their figures.
"""

from refimpl.clients.backend import Backend, ServerStatus
from refimpl.clients.client_port import ClientPort
from refimpl.clients.settings import ClientSettings

__all__ = ["Backend", "ClientPort", "ClientSettings", "ServerStatus"]
