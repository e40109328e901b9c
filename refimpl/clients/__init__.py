"""The client port: connections, sessions and four-letter words, around the decisions of `spec.service`.

- `server.Clients`: the port, and the interface for the core of the node.
- `service.Service`: the interface that the core implements.
- `channel`, `connection`, `answers`: the transport of one client, its requests, and their answers.
- `turns`: the bound on requests in one turn of the event loop.
- `settings`, `tls`: the keys of zoo.cfg for the port. `words`: the four-letter words. `statistics`: their figures.
"""

from refimpl.clients.server import Clients
from refimpl.clients.service import ServerStatus, Service
from refimpl.clients.settings import ClientSettings

__all__ = ["ClientSettings", "Clients", "ServerStatus", "Service"]
