"""Mutants of the client port: what clients would notice."""

from tests.simulation.mutant import Mutant

_PORT, _CONNECTION = "refimpl/clients/client_port.py", "refimpl/clients/connection.py"
_CHANNEL, _PROCESSOR = "refimpl/clients/channel.py", "refimpl/clients/final_processor.py"

MUTANTS = (
    Mutant("watches never fire", _PORT, "            self.processor.fire(applied.events)", "            pass"),
    Mutant("watches fire later", _PORT, "            self.processor.fire(applied.events)", "            self._loop.call_later(0.05, self.processor.fire, applied.events)"),
    Mutant("an event is sent twice", _PROCESSOR, "                    connection.send(packet)", "                    connection.send(packet + packet)"),
    Mutant("the events that a client missed are not sent", _PROCESSOR, "                connection.send(encode_event(Event(event, path)))", "                pass"),
    Mutant("watches are not registered", _PROCESSOR, "            if kind is not None:", "            if False:"),
    Mutant("answers have the next zxid", _CONNECTION, "_ZXID_OF_REPLY.get(pending.route, self._owner.last_zxid)", "_ZXID_OF_REPLY.get(pending.route, self._owner.last_zxid + 1)"),
    Mutant("answers have the zxid before", _CONNECTION, "_ZXID_OF_REPLY.get(pending.route, self._owner.last_zxid)", "_ZXID_OF_REPLY.get(pending.route, self._owner.last_zxid - 1)"),
    Mutant("a server that is behind accepts a client", _CONNECTION, "ConnectClaims(request.last_zxid_seen,", "ConnectClaims(0,"),
    Mutant("a write is answered with the present tree", _CONNECTION, "        outcome = (code, reply) if route is Route.WRITE else None", "        outcome = None"),
    Mutant("the clients of a server stay when it stops serving", _PORT, "                connection.end(\"this server does not serve any more\")", "                pass"),
    Mutant("requests do not keep a session alive", _PORT, "                self.backend.touch(connection.session, connection.timeout)", "                pass"),
    Mutant("all servers give out the same sessions", _PORT, "first_session_id(settings.server_id, wall_ms())", "first_session_id(1, 1)"),
    Mutant("a session has the id of the last one", _PORT, "next_session_id(self._next_session)", "self._next_session"),
    Mutant("every write succeeds", _PORT, "applied.code, applied.reply, closes=closes)", "type(applied.code)(0), applied.reply, closes=closes)"),
    Mutant("a sync is not answered", _PORT, "            connection.settled(cxid, Route.SYNC)", "            pass"),
    Mutant("answers of one turn leave in reverse", _CHANNEL, "        data = b\"\".join(self._out)", "        data = b\"\".join(reversed(self._out))"),
    Mutant("a renewed session is not asked for", _PORT, "        self.backend.revalidate(session, connection.timeout)", "        connection.established_as(valid=True)"),
    Mutant("a revalidation is ignored", _PORT, "            connection.established_as(valid)\n", "            pass\n"),
)  # fmt: skip
