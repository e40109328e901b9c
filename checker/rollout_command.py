"""The command `rollout`: its options, which the page of the planner has too, and the request that they make.

The planner is imported late, because other commands do not need it.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from checker.command import Command, release, say, seconds, unread_output_discarded
from checker.source import STARTED
from spec.quorum import Sid
from spec.text import LONG, between, integer, integers, required_integer

if TYPE_CHECKING:
    from checker.rollout import PlanRequest
    from checker.rollout.disks import DiskHazard


def _rollout_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "exit codes: 0 safe, 12 unsafe, 13 it comes to a stop, 20 undecided within the budget, or the state of --now "
        "must be mended first, 22 safe only in stages or by reconfig, 151 bad configuration file, 2 bad command line."
    )
    parser.add_argument(
        "--from",
        required=True,
        type=_input,
        metavar="INPUT",
        dest="old",
        help="the present state: zoo.cfg files, Kubernetes manifests, or live servers (HOST:PORT,...)",
    )
    parser.add_argument(
        "--to", required=True, type=_input, metavar="INPUT", dest="new", help="the new state, in any of these forms"
    )
    parser.add_argument(
        "--now",
        nargs="+",
        type=_input,
        metavar="INPUT",
        help="the servers now, if the roll-out was interrupted: addresses (HOST:PORT,...), folders with zoo.cfg, data "
        "and logs, as for diagnose",
    )
    parser.add_argument(
        "--same-machines",
        action="store_true",
        help="a server whose host has another name in the new files runs on the same machine as before",
    )
    parser.add_argument(
        "--order", type=sids, metavar="4,5,1,3,2", help="check this order (default: search for a safe one)"
    )
    parser.add_argument(
        "--how",
        choices=(
            *("one-by-one", "no-wait", "parallel", "stop-all"),
            *("controller", "parallel-controller", "unready-controller"),
        ),
        help="judge this way of working (default: that of the platform, or one-by-one; and every way is compared)",
    )
    parser.add_argument(
        "--in-one-go",
        action="store_true",
        help="judge only the direct change, in every way of working without --how: for CI gates",
    )
    parser.add_argument(
        "--files",
        choices=("ready", "at-step"),
        default="ready",
        help="a crash may bring the new file, which lies ready on its server (ready), or it is copied at its step",
    )
    parser.add_argument(
        "--faults",
        type=between(0, 3),
        metavar="K",
        help="crashes, partitions and lost connections in all (1)",
    )
    parser.add_argument(
        "--explain", action="store_true", help="print the evidence on a terminal, too: every question, run and limit"
    )
    parser.add_argument("--no-cache", action="store_true", help="judge again, even if the answer is kept from before")
    parser.add_argument("--explore", action="store_true", help="make the runs that a proof makes unnecessary, too")
    parser.add_argument(
        "--leader", type=_sid, metavar="SID", help="the server that leads at first (default: each that may)"
    )
    parser.add_argument(
        "--disk",
        type=_disk,
        action="append",
        default=[],
        metavar="SID=KIND",
        help="server SID starts with a disk that is empty (lost), stale (of an earlier time) or foreign (of others); "
        "may be repeated",
    )
    parser.add_argument(
        "--release",
        type=release,
        metavar="RELEASE",
        help="the release of ZooKeeper that runs, like 3.8.4: its known defects are judged, too (see list releases)",
    )
    parser.add_argument(
        "--to-release",
        type=release,
        metavar="RELEASE",
        help="the release that each server gets at its step, for an upgrade; needs --release",
    )
    parser.add_argument("--down", type=sids, default=(), metavar="4,5", help="servers that do not run, now or later")
    parser.add_argument(
        "--budget",
        type=seconds,
        default=60.0,
        metavar="T",
        help="work for all runs, in seconds of a usual processor, such as 60s or 5m (60s)",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="the answer for machines, on standard output")
    form.add_argument(
        "--format",
        choices=("markdown", "github-comment"),
        default="markdown",
        help="the form of the answer; github-comment is short enough for a comment on a pull request (markdown)",
    )
    parser.add_argument(
        "--output", type=Path, metavar="FILE.md", help="write the answer to a file, with the whole traces folded away"
    )
    parser.add_argument("--traces", type=Path, metavar="DIR", help="write every counterexample, in every format")
    parser.add_argument("--scenarios", type=Path, metavar="DIR", help="write every run as a scenario")
    parser.add_argument("--stages", type=Path, metavar="DIR", help="write the zoo.cfg of every server for every stage")


def _input(text: str) -> str:
    """Accept the name of an input, which may not be empty: an empty path would be the folder of this process."""
    if not text.strip():
        raise argparse.ArgumentTypeError("it names no input; write a folder, a file or addresses (. is this folder)")
    return text


def sids(text: str) -> tuple[Sid, ...]:
    """Parse comma-separated server ids."""
    ids = integers(map(str.strip, text.split(",")), 0, LONG[1])
    if ids is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of server ids; write 4,5,1,3,2")
    return ids


def _sid(text: str) -> Sid:
    sid = integer(text.strip(), 0, LONG[1])
    if sid is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not the id of one server; write a number, such as 2")
    return sid


def _disk(text: str) -> tuple[Sid, DiskHazard]:
    from checker.rollout.disks import DiskHazard  # noqa: PLC0415

    match = re.fullmatch(r"\s*([0-9]{1,18})\s*=\s*(\w+)\s*", text)
    kinds = [hazard.value for hazard in DiskHazard]
    if match is None or match[2] not in kinds:
        raise argparse.ArgumentTypeError(f"{text!r} is not a disk of a server; write 3={', 3='.join(kinds)}")
    return required_integer(match[1]), DiskHazard(match[2])


def request_of(options: argparse.Namespace) -> PlanRequest:
    """The request of a command line, or of the page.

    Raises OrderError, spec.config.ConfigError for an input, and UnfitStateError for a state that must be mended first.
    """
    from checker.diagnose.present_state import present_state  # noqa: PLC0415
    from checker.rollout import OrderError, PlanRequest  # noqa: PLC0415
    from checker.rollout.config_state import with_same_machines  # noqa: PLC0415
    from checker.rollout.disks import disks_of  # noqa: PLC0415
    from checker.rollout.inputs.folders import with_namespace_of  # noqa: PLC0415
    from checker.rollout.inputs.sources import read_input  # noqa: PLC0415
    from checker.rollout.orders import Way  # noqa: PLC0415
    from checker.rollout.scenarios import ReleaseChange  # noqa: PLC0415

    given_old, given_new = read_input(options.old), read_input(options.new)
    old, new = with_namespace_of(given_old, given_new), with_namespace_of(given_new, given_old)
    state = None if options.now is None else present_state(options.now, old, new, frozenset(options.down))
    if options.same_machines:
        new = with_same_machines(old, new)
    release, to_release = options.release, options.to_release
    if to_release is not None and release is None:
        raise OrderError("--to-release needs --release, the release that runs now; add --release", "to-release")
    leader = (state.leader if state is not None else None) or old.leader
    return PlanRequest(
        old,
        new,
        options.order,
        options.leader if options.leader is not None else leader,
        1 if options.faults is None else options.faults,
        options.budget,
        frozenset(options.down),
        in_one_go=options.in_one_go,
        explored=options.explore or options.faults is not None,
        now=state,
        leads_now=options.leader is None and leader is not None,
        how=None if options.how is None else Way(options.how),
        disks=disks_of(options.disk),
        releases=None if release is None else ReleaseChange(release, to_release or release),
        at_step=options.files == "at-step",
    )


def _rollout(options: argparse.Namespace) -> int:
    from checker.execution import ended_by  # noqa: PLC0415
    from checker.rollout import Engine, plan  # noqa: PLC0415
    from checker.rollout.output.cache import AnswerCache, rendered  # noqa: PLC0415
    from checker.rollout.output.data import write_scenarios, write_stages, write_traces  # noqa: PLC0415
    from checker.rollout.runs import TimeBetweenRuns  # noqa: PLC0415
    from checker.user_files import check_writable, make_folder, write  # noqa: PLC0415

    runs = TimeBetweenRuns(Engine().run, options.budget)
    with ended_by(runs.check):
        request = request_of(options)
    # The folders are created first: a bad path must fail before the runs, not after them.
    if options.output is not None:
        check_writable(options.output)
    writers = ((options.traces, write_traces), (options.scenarios, write_scenarios), (options.stages, write_stages))
    outputs = [(folder, write_all) for folder, write_all in writers if folder is not None]
    for folder, _ in outputs:
        make_folder(folder)
    answers = AnswerCache(None) if options.no_cache else AnswerCache.of_user(STARTED)
    answer = None if outputs else answers.load(request)
    if answer is None:
        with ended_by(runs.check):
            judged_plan = plan(request, runs.run)
            answer = rendered(judged_plan)
        answers.save(judged_plan, answer)
        for folder, write_all in outputs:
            write_all(judged_plan, folder)
    comment = options.format == "github-comment"
    if options.output is not None:
        write(options.output, answer.comment if comment else answer.whole)
    with unread_output_discarded():
        if options.json:
            say(json.dumps(answer.data))
        elif comment:
            say(answer.comment, end="")
        else:
            whole = options.explain or not sys.stdout.isatty()
            say(answer.whole if whole else answer.brief, end="")
    return answer.exit_code


ROLLOUT = Command(_rollout_options, _rollout)
