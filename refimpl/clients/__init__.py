"""The client port: connections, sessions and four-letter words, around the decisions of `spec.service`.

- `server.Clients`: the port itself; what the core of the node calls.
- `service.Service`: what the core must offer to it.
- `channel`, `connection`, `answers`: the way to one client, its requests, and the answers to them.
- `turns`: how much is handled in one turn of the event loop.
- `settings`, `tls`: what zoo.cfg says of the port. `words`: the four-letter words. `statistics`: their figures.
"""

from refimpl.clients.server import Clients
from refimpl.clients.service import ServerStatus, Service
from refimpl.clients.settings import ClientSettings

__all__ = ["ClientSettings", "Clients", "ServerStatus", "Service"]
