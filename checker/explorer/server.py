"""The explorer's page over HTTP, on the loopback interface only, by the rules of `checker.local_page`.

A view of a walk that is opened in another tab may have its own styles and scripts; it is sandboxed, has no origin and
may send no requests.

`Handlers` answers the requests of the page: a walk, a look-ahead, a saved trace, a file.

    GET  /api/jobs                    the jobs that may be walked, and the walk to begin with
    POST /api/walk     WalkRequest      a walk, as `checker.explorer.views` describes it
    POST /api/find     FindRequest      looks ahead from the end of a walk; lines of JSON until it is done
    POST /api/whole    ExploreRequest   explores the whole space of a job; lines of JSON until it is done
    POST /api/refine   RefineRequest    the run that a walk by the oracle represents, message by message
    POST /api/load     LoadRequest      replays a saved trace, and makes a walk of it
    GET  /api/file     job, path, format, as, show   a walk as a file: of the finding `as`, or of none

The bodies are those of `checker.explorer.walk`. Lines of JSON are `{"progress": {"states": 12, "depth": 3}}`, and
finally `{"done": ...}` or `{"error": "..."}`. Closing the connection earlier cancels the search.

A job is identified by the fingerprint of its source. The initial jobs stay. Of the jobs loaded from traces, the last
`LOADED` are kept, since a trace can bring its job again.
"""

import re
import threading
from collections import OrderedDict
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import SplitResult, parse_qs

from checker.engine.discovery import Discovery
from checker.engine.model import Kind, ModelError
from checker.engine.result import Stop
from checker.explorer import views
from checker.explorer.walk import (
    ExploreRequest,
    FindRequest,
    LoadRequest,
    Path,
    ProgressCallback,
    RefineRequest,
    WalkRequest,
    Walks,
    look_ahead,
    read_path,
    search_whole,
)
from checker.job import Job, Json
from checker.local_page import (
    TYPES,
    BadRequestError,
    PageHandler,
    PageServer,
    ProgressSender,
    assets_of,
    read_request,
    slot,
)
from checker.models.ensemble import NotRefinedError
from checker.report import judge
from checker.scenario.loader import SourceError, job_of
from checker.traces.formats import FORMATS, Format
from checker.traces.itf import TraceFileError, read_itf
from checker.traces.replay import ReplayError, replay
from checker.traces.trace import Trace, trace_of, walk_of

LOADED = 8
SEARCHES = 2  # that may run concurrently
NOTHING = ""  # the finding of a walk that is saved without a finding


@dataclass(frozen=True)
class OpenJob:
    """A job that may be walked, by its key."""

    key: str
    job: Job
    walks: Walks
    folder: str = ""  # of the scenario file; empty for the job of a trace
    story: Json = None  # as `checker.explorer.stories` has placed it

    @property
    def view(self) -> dict[str, Json]:
        """The view of the job."""
        return views.job_view(self.job, self.key, self.folder, self.story)


class Handlers:
    """The jobs that are open, and the answers. Threads may share it.

    Each job comes with the name of the folder of its scenario file. The page shows it, because scenarios can have
    similar names. It may have a story besides.
    """

    def __init__(self, jobs: Iterable[tuple[Job, str] | tuple[Job, str, Json]] = ()) -> None:
        self._first = {item.key: item for item in (_opened(*parts) for parts in jobs)}
        self._loaded: OrderedDict[str, OpenJob] = OrderedDict()
        self._lock, self._searches = threading.Lock(), threading.BoundedSemaphore(SEARCHES)
        self._start: tuple[str, tuple[int, ...]] | None = None

    # -- jobs ------------------------------------------------------------------------------------------------

    def jobs(self) -> dict[str, Json]:
        """The jobs, and the walk to begin with."""
        opened = self.opened()
        key, path = self._start or (opened[0].key if opened else "", ())
        return {
            "jobs": [item.view for item in opened],
            "start": {"job": key, "path": list(path)},
            "formats": [{"name": item.name, "suffix": item.suffix} for item in FORMATS.values()],
        }

    def opened(self) -> list[OpenJob]:
        """The jobs that are open: the initial ones first."""
        with self._lock:
            return [*self._first.values(), *self._loaded.values()]

    def _open(self, key: str) -> OpenJob:
        with self._lock:
            opened = self._first.get(key) or self._loaded.get(key)
        if opened is None:
            problem = f"this link is of another run ({key or 'of none'}) than those that are open here"
            right = "start the explorer with the scenario that it was made from, as it was then"
            raise BadRequestError(f"{problem}; {right}", HTTPStatus.NOT_FOUND)
        return opened

    def _add(self, job: Job, folder: str = "") -> OpenJob:
        opened = _opened(job, folder)
        with self._lock:
            known_job = self._first.get(opened.key) or self._loaded.pop(opened.key, None) or opened
            if opened.key not in self._first:
                self._loaded[opened.key] = known_job
                if len(self._loaded) > LOADED:
                    self._loaded.popitem(last=False)
        return known_job

    # -- walks -----------------------------------------------------------------------------------------------

    def walk(self, request: WalkRequest) -> dict[str, Json]:
        """Return the view of a walk. Raises BadRequestError, also if the walk does not match the check of its link."""
        opened = self._open(request.job)
        view = views.walk_view(opened.job, opened.key, opened.walks, request.path)
        if request.check is not None and view["link"] != views.link_of(opened.key, request.path, request.check):
            problem = "this link was made by another release: its moves now lead to another state"
            raise BadRequestError(f"{problem}; begin anew, or open a saved trace", HTTPStatus.CONFLICT)
        return view

    def load(self, request: LoadRequest) -> dict[str, Json]:
        """Replay a saved trace; returns the verified facts and the walk. Raises BadRequestError."""
        try:
            trace = read_itf(request.text, request.name)
            opened = self._first.get(views.fingerprint(trace.source)) or self._add(job_of(trace.source))
            replayed = replay(trace, opened.job)
        except (TraceFileError, SourceError, ReplayError, ModelError) as error:
            raise BadRequestError(str(error), HTTPStatus.UNPROCESSABLE_ENTITY) from None
        ordinals = opened.walks.ordinals(replayed.path)
        return {
            "job": opened.view,
            "path": list(ordinals),
            "headline": replayed.trace.headline,
            "verified": list(replayed.verified),
        }

    def begin_with(self, request: LoadRequest) -> str:
        """Let the page begin with a saved trace; returns its headline. Raises BadRequestError."""
        loaded = self.load(request)
        self._start = loaded["job"]["key"], tuple(loaded["path"])
        return str(loaded["headline"])

    def refine(self, request: RefineRequest) -> dict[str, Json]:
        """Return a walk that ends in a finding, refined to the finer grain. Raises BadRequestError."""
        opened = self._open(request.job)
        run = self._found(opened, opened.walks.path(request.path), request.finding)
        if opened.job.refinement is None or run is None:
            raise BadRequestError("only a run by the oracle that ends in a finding can be shown message by message")
        with self._search():
            try:
                job, fine = opened.job.refinement.found(run)
            except NotRefinedError as error:
                raise BadRequestError(
                    f"this run cannot be shown message by message: {error}", HTTPStatus.UNPROCESSABLE_ENTITY
                ) from None
        finer = self._add(job, opened.folder)
        return {"job": finer.view, "path": list(finer.walks.ordinals(fine.path))}

    def file(self, job: str, path: tuple[int, ...], form: str, finding: str | None) -> tuple[Format, Trace, str]:
        """Return a walk in a format: the format, the trace and the text. Without `finding`, the gravest one is used.

        Raises BadRequestError.
        """
        if form not in FORMATS:
            raise BadRequestError(f"unknown format {form[:40]!r}; write one of {', '.join(FORMATS)}")
        opened = self._open(job)
        steps = opened.walks.path(path)
        run = self._found(opened, steps, finding)
        trace = trace_of(opened.job, run) if run else walk_of(opened.job, steps)
        try:
            return FORMATS[form], trace, FORMATS[form].view(trace)
        except ValueError as error:
            raise BadRequestError(f"{form}: {error}", HTTPStatus.UNPROCESSABLE_ENTITY) from None

    def _found(self, opened: OpenJob, path: Path, name: str | None) -> Discovery | None:
        """Return the finding of that name at the end of a run: the gravest for a name of None, None for NOTHING."""
        if name == NOTHING:
            return None
        runs = opened.walks.findings(path)
        if name is None:
            return runs[0] if runs else None
        for run in runs:
            if run.prop.name == name:
                return run
        instead = f", but in one of {', '.join(run.prop.name for run in runs)}" if runs else ""
        raise BadRequestError(f"this walk ends in no finding of {name[:80]}{instead}")

    # -- searches --------------------------------------------------------------------------------------------

    def find(self, request: FindRequest, progress: ProgressCallback) -> dict[str, Json]:
        """Look ahead; returns the ordinals of the moves to the goal, or the reason. Raises BadRequestError."""
        opened = self._open(request.job)
        row = opened.walks.path(request.path)[-1].row
        with self._search():
            result = look_ahead(opened.job, row, request.goal, progress)
        return {
            "path": None if result.path is None else [*request.path, *result.path],
            "moves": len(result.path or ()),
            "states": result.states,
            "depth": result.depth,
            "whole": result.whole,
            "why": result.why,
        }

    def whole(self, request: ExploreRequest, progress: ProgressCallback) -> dict[str, Json]:
        """Explore a job from its first state: its verdict, and the walk to each finding. Raises BadRequestError."""
        opened = self._open(request.job)
        with self._search():
            explored = search_whole(opened.job, progress)
        judgement = judge(opened.job, explored, opened.job.actions)
        runs = sorted(explored.found.values(), key=lambda run: (run.prop.kind is Kind.SOMETIMES, run.depth))
        return {
            "verdict": judgement.verdict.value,
            "sentence": judgement.sentence,
            "cancelled": explored.stop is Stop.INTERRUPTED,
            "states": explored.states,
            "depth": explored.depth,
            "found": [
                {**views.finding_view(opened.job, run), "path": list(opened.walks.ordinals(run.path))} for run in runs
            ],
        }

    def _search(self) -> AbstractContextManager[None]:
        return slot(self._searches, f"{SEARCHES} searches are under way; cancel one, or wait until it ends")


def _opened(job: Job, folder: str, story: Json = None) -> OpenJob:
    return OpenJob(views.fingerprint(job.source), job, Walks(job.model), folder, story)


LARGEST_TRACE = 1 << 25  # bytes of a request with a trace
LONGEST_NAME = 120  # characters of a file name before its suffix
ALONE = (
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
)


class Server(PageServer):
    """The HTTP server of one set of handlers. Raises PortError."""

    def __init__(self, handlers: Handlers, port: int = 0) -> None:
        self.handlers = handlers
        super().__init__(_Handler, assets_of(__package__), "explorer", port)


class _Handler(PageHandler):
    server: Server
    refusals = (BadRequestError, ModelError)

    def _get_other(self, address: SplitResult) -> None:
        if address.path == "/api/jobs":
            self._json(self.server.handlers.jobs())
        elif address.path == "/api/file":
            self._file(address.query)
        else:
            super()._get_other(address)

    def _file(self, query: str) -> None:
        try:
            query_values = parse_qs(query, keep_blank_values=True, max_num_fields=8)
        except ValueError:
            raise BadRequestError("the address names too many things") from None
        parameters = {name: values[0] for name, values in query_values.items()}
        handlers = self.server.handlers
        path, form = read_path(parameters.get("path", "")), parameters.get("format", "")
        layout, trace, text = handlers.file(parameters.get("job", ""), path, form, parameters.get("as"))
        stem = re.sub(r"[^A-Za-z0-9.]+", "-", f"{trace.job} {trace.prop or 'walked'}").strip("-")[:LONGEST_NAME]
        kind = TYPES.get(layout.suffix, "text/plain")
        disposition = "inline" if "show" in parameters else "attachment"
        disposition = f'{disposition}; filename="{stem}.{layout.suffix}"'
        headers = {"Content-Disposition": disposition, "Content-Security-Policy": ALONE}
        self._send(text.encode("utf-8", "backslashreplace"), f"{kind}; charset=utf-8", headers=headers)

    def _post(self) -> None:
        handlers, path = self.server.handlers, self.path
        if path == "/api/walk":
            self._json(handlers.walk(read_request(self._body(), WalkRequest)))
        elif path == "/api/load":
            self._json(handlers.load(read_request(self._body(LARGEST_TRACE), LoadRequest)))
        elif path == "/api/refine":
            self._json(handlers.refine(read_request(self._body(), RefineRequest)))
        elif path == "/api/find":
            ahead = read_request(self._body(), FindRequest)
            self._lines(lambda send: handlers.find(ahead, _counts(send)))
        elif path == "/api/whole":
            whole = read_request(self._body(), ExploreRequest)
            self._lines(lambda send: handlers.whole(whole, _counts(send)))
        else:
            super()._post()


def _counts(send: ProgressSender) -> ProgressCallback:
    return lambda states, depth: send({"states": states, "depth": depth})
