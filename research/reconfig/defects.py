"""The runs of the findings E, F and G, measured: views, files and epochs at the moments that show a defect."""

from collections.abc import Iterable

from harness.processes import ServerError
from harness.reproduce.by_hand.epochs import EPOCH, EpochOfActiveView
from harness.reproduce.by_hand.forgotten import ForgottenView
from harness.reproduce.by_hand.hand_made import HandMadeRun, carry_out
from harness.reproduce.by_hand.observation import COLUMNS, look
from harness.reproduce.by_hand.pending import CRASH, SPLIT, PendingView
from harness.reproduce.by_hand.replacement import NEW_WRITE, OLD_SIDE, OLD_WRITE, ZXID
from harness.reproduce.by_hand.servers import Bench
from harness.reproduce.disks import read_current_epoch
from harness.reproduce.ends import Outcome, Reproduction
from harness.zoo_cfg import NEXT, brief
from research.reconfig.facts import FactTable
from spec.quorum import Sid

FORGOTTEN = (
    "starts of 1 after its ACK", "`.next` of 1", "log of 1", "{1, 2}", "config node of 1", "`/old-side`", "`/new-side`",
)  # fmt: skip
EPOCHS = ("moment", "server", "currentEpoch", f"NEWLEADER of epoch {EPOCH}", "srvr", "active file", ".next")
PENDING = (
    "run",
    "leaders that acknowledged a write",
    "zxids of the writes",
    "who has them in the end",
    "who leads in the end",
)
SECONDS_IN_CONTROLS = 12.0
"""The time that a side has to serve in a control, where one side never does."""


def pending(bench: Bench) -> Iterable[FactTable]:
    """The views of each server after a joiner has reconnected, and the end of each run."""
    rows = []
    for number, (variant, control) in enumerate(((SPLIT, False), (CRASH, False), (SPLIT, True), (CRASH, True))):
        run = _MeasuredPending(bench, f"pending-{number}", variant)
        run.seconds = SECONDS_IN_CONTROLS if control else run.seconds
        result = _carried_out(run, control=control)
        if not number:
            yield FactTable("pending", ("server", *COLUMNS), run.views)
        rows.append((f"{variant.name}, {'nobody' if control else '4'} reconnects, {variant.fault}", *run.row(result)))
    yield FactTable("pending-outcome", PENDING, tuple(rows))


def forgotten(bench: Bench) -> Iterable[FactTable]:
    """A row for one start, and one for two."""
    runs = {starts: _MeasuredForgotten(bench, f"forgotten-{starts}") for starts in (1, 2)}
    for starts, run in runs.items():
        run.seconds = SECONDS_IN_CONTROLS
        _carried_out(run, control=starts == 1)
    yield FactTable("forgotten", FORGOTTEN, tuple((str(starts), *run.row) for starts, run in runs.items()))


def epochs(bench: Bench) -> Iterable[FactTable]:
    """The epochs of all servers when both leaders are established, and in the end."""
    run = _MeasuredEpochs(bench, "epochs")
    result = _carried_out(run)
    if result.effects != run.effects:
        raise ServerError(f"not all servers have the write: {result.present}")
    yield FactTable("epochs", EPOCHS, tuple(run.rows))


def _carried_out(run: HandMadeRun, *, control: bool = False) -> Reproduction:
    """The result of a run. Raises ServerError if it failed, or if a step did not happen that is none of a control."""
    result = carry_out(run, lambda _: None, control=control)
    if result.outcome is Outcome.HARNESS_FAILED or (not control and result.steps[-1].differences):
        raise ServerError(result.reason)
    return result


class _MeasuredPending(PendingView):
    views: tuple[tuple[str, ...], ...] = ()
    last: tuple[Sid, ...] = ()

    def fail(self) -> None:
        self.views = tuple((str(sid), *look(self.servers, sid).cells()) for sid in self.servers.sids)
        super().fail()

    def recover(self) -> None:
        super().recover()
        self.last = tuple(sid for sid in self.servers.sids if self.servers.role(sid) == "leader")

    def row(self, result: Reproduction) -> tuple[str, ...]:
        leaders = ", ".join(f"{sid} in epoch {epoch}" for sid, epoch in result.leaders.items())
        zxids = ", ".join(f"`{path}` {zxid:#x}" for path, zxid in self.zxids.items())
        places = {path: ", ".join(map(str, sids)) or "nobody" for path, sids in result.present.items()}
        holders = "; ".join(f"`{path}`: {sids}" for path, sids in places.items())
        return leaders or "-", zxids or "-", holders or "-", ", ".join(map(str, self.last)) or "-"


class _MeasuredForgotten(ForgottenView):
    row: tuple[str, ...] = ()

    def recover(self) -> None:
        leads = [sid for sid in OLD_SIDE if self.servers.role(sid) == "leader"]
        next_file = self.servers.file(1, NEXT)
        self.row = (
            brief(next_file) if next_file else "missing",
            "has the transaction" if ZXID in self.servers.logged(1) else "has it not",
            f"{leads[0]} leads" if leads else "no leader",
            brief(self.servers.config(1)) if leads else "-",
            *(f"acknowledged, {self.zxids[path]:#x}" if path in self.zxids else "no service"
              for path in (OLD_WRITE, NEW_WRITE)),
        )  # fmt: skip


class _MeasuredEpochs(EpochOfActiveView):
    rows: tuple[tuple[str, ...], ...] = ()

    def recover(self) -> None:
        before = self._looked(f"{self.zxids[NEW_WRITE]:#x} is acknowledged")
        super().recover()
        self.rows = (*before, *self._looked("mended; all have the write"))

    def _looked(self, moment: str) -> list[tuple[str, ...]]:
        senders = {packet.sender for packet in self.servers.packets("NEWLEADER") if packet.packet.zxid == EPOCH << 32}
        sights = {sid: look(self.servers, sid) for sid in self.servers.sids}
        return [
            (
                moment,
                str(sid),
                str(read_current_epoch(self.servers.data(sid))),
                "sent" if sid in senders else "-",
                sight.mode,
                sight.active,
                sight.next,
            )
            for sid, sight in sights.items()
        ]
