"""The specification in the place of the server under test, with known defects or without.

It needs no process and no socket. A twin of the specification must have no misfit, and a twin of a variant must name
that variant.
"""

from collections.abc import Sequence

from harness.twin.candidates import Candidates, DiskState, Ensemble, Event, Outlook, Sight


class Imitation:
    """A server under test that does what its own `ensemble` says."""

    has_clients = True

    def __init__(self, ensemble: Ensemble) -> None:
        self._ensemble = ensemble
        self._truth = Candidates(ensemble, [ensemble.model.initial()])
        self._sight = Sight()

    def begin(self, ensemble: Ensemble) -> None:
        """Start a new life, with the disk of the imitation's model."""
        del ensemble
        self._truth = Candidates(self._ensemble, [self._ensemble.model.initial()])

    def cause(self, event: Event) -> None:
        """Take the event and the hidden steps behind it."""
        outlook = self._truth.outlooks(event.move)[0]
        server = self._ensemble.server(outlook.row)
        self._truth.rows = [outlook.row]
        self._truth.note_role()
        durable = server.durable
        zxids = tuple(txn.zxid for txn in durable.records)
        disk = None if server.runs else DiskState(durable.accepted_epoch, durable.current_epoch, zxids)
        self._sight = Sight(outlook.emitted, outlook.vote, outlook.queued[:1], outlook.applied, disk)

    def look(self, outlooks: Sequence[Outlook]) -> Sight:
        """The sight by the imitation's model."""
        del outlooks
        return self._sight

    def waiting(self) -> tuple[int, ...]:
        """The zxid of the next record."""
        return self._sight.waiting or ()

    def shut_down(self) -> None:
        """Nothing runs."""
