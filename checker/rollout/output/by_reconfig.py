"""The answer about `reconfig` as Markdown: the commands and server starts, the comparison of the ways, the obstacles.

Rules of this module: it judges nothing. A search that was not finished is called that wherever it is named.
"""

from collections.abc import Iterable, Iterator
from itertools import count
from shlex import quote

from checker.printable import capital, code, fenced
from checker.rollout.answer import Plan
from checker.rollout.output.sentences import RECONFIG_WORDS, WORDS, command_words, servers
from checker.rollout.output.shell_commands import AT_PORT
from checker.rollout.reconfig.answers import FaultBudget, Ground, Preference, ReconfigAnswer, RouteAnswer
from checker.rollout.reconfig.commands import MembershipCommand, Obstacle, Refusal
from checker.symbolic.report import set_text
from spec.config.server_line import ANY_ADDRESS
from spec.quorum import Sid

CALLER = (
    "The session must be allowed to write `/zookeeper/config`. From a command to its reply restart no server, and let "
    "no connection of a joiner break. Without a reply compare the configurations of all servers first."
)
MEANWHILE = (
    "`reconfig` needs `reconfigEnabled=true` at every server, and a session that may write `/zookeeper/config`: "
    "`addauth digest super:PASSWORD`, if the servers have `-Dzookeeper.DigestAuthenticationProvider.superDigest`; or a "
    "user to whom that super user has given the permission; or servers with `-Dzookeeper.skipACL=yes`. If a connection "
    "breaks before the reply, 3.9.5 may activate a configuration that is not committed, or forget one. A joiner that "
    "dies before the reply needs its first files again."
)
PROMISE = (
    "The claims by `reconfig` are: never two leaders of one epoch, and no acknowledged write lost, with the defects of "
    "3.9.5. Two faults are a lost connection with one more fault, unless two were asked for."
)
QUORUMS_MEET = (
    "every quorum before a command meets every quorum after it (proved). No theorem is about `reconfig`, so the "
    "verdict rests on the runs."
)
QUORUMS_APART = "{} may decide by the members before it, {} by those after it, and these have no server in common."
JOINER = "an empty disk (`dataDir` and `dataLogDir`) but for `myid`, and with this `dynamicConfigFile`"
CHECK = "**Check before the next command**: all print the same version, and the last joiner is a member. If not, wait."
HAND_OVER = (
    "If it leads, another server takes over without an election, in a new epoch, and the reply may be lost: `config` "
    "tells."
)
PROMOTION = (
    "{} acknowledges nothing before it votes, so the commit needs all of {}. If one of them loses its connection "
    "before the reply, it may not find the leader again, and no write is answered until the leader is restarted (seen "
    "on 3.9.5). Restart the leader then. If the leader dies before the reply, it may not find the next one after its "
    "restart (seen on 3.9.5). Restart the present leader then. To avoid both, remove {} first, and add it with the "
    "files of a joiner."
)
OBSTACLES = {
    Obstacle.STANDALONE: (
        "A standalone server refuses `reconfig` (Unimplemented, seen on 3.9.5; `standaloneEnabled`), and no command "
        "makes an ensemble standalone. Use restarts."
    ),
    Obstacle.DISABLED: (
        "`reconfigEnabled` is not true at any server, so a leader answers ReconfigDisabled (seen on 3.9.5). Set it in "
        "every file, restart the servers one by one with the same members, and ask again."
    ),
    Obstacle.DISABLED_AT_SOME: (
        "`reconfigEnabled` is not true at {}. As a leader such a server answers ReconfigDisabled. As a follower it "
        "keeps the members of its own file; after its next start it never finds the ensemble again, until its file has "
        "the new members (both seen on 3.9.5). Set it in the file of {}, restart with the same members, and ask again."
    ),
    Obstacle.DISABLED_AFTER: (
        "`reconfigEnabled` is not true in the new file of {}. A server that starts with such a file after a later "
        "`reconfig` never finds the ensemble again (seen on 3.9.5). Set it there, and ask again."
    ),
    Obstacle.NOT_MAJORITIES: (
        "Groups or weights: ZooKeeper refuses `-add` and `-remove` (BadArguments). A whole list of new members is not "
        "judged here."
    ),
    Obstacle.ADDRESSES: (
        "The address of {} changes, which is not judged here. Add a server with a new id instead, and then remove the "
        "old one."
    ),
    Obstacle.TOO_FEW_VOTERS: (
        "Fewer than two voters would be left: ZooKeeper refuses that (BadArguments), unless `standaloneEnabled=false`."
    ),
    Obstacle.NO_CLIENT_ADDRESS: (
        "There is no client address for {}, so ZooKeeper refuses the command (BadArguments, seen on 3.9.5). End the "
        "`server.N` line with `;2181`, or set `clientPort`."
    ),
}
GROUNDS = {
    Ground.BETTER_VERDICT: "its verdict is better: {} against {}",
    Ground.BETTER_WITHOUT_FAULTS: "its verdict without faults is better: {} against {}",
    Ground.BRINGS_IT_ABOUT: "the verdicts are equal ({}), and restarts do not bring this change about",
}


def commands(plan: Plan) -> list[str]:
    """The commands and server starts of the advised route; empty without one."""
    answer = plan.by_reconfig
    if answer is None or answer.advised is None:
        return []
    title = f"## By `reconfig`{': the steps' if answer.is_preferred else ', which is not the safer way'}"
    return [title, "", CALLER, "", *fenced(AT_PORT.function, ""), "", *_steps(answer.advised)]


def comparison(plan: Plan) -> list[str]:
    """The comparison of the ways; empty without a route."""
    answer = plan.by_reconfig
    if answer is None or answer.advised is None:
        return []
    quorums = [line for route in answer.routes for line in _quorums(route)]
    return ["## By `reconfig` or by restarts", "", MEANWHILE, "", PROMISE, *([""] if quorums else []), *quorums]


def obstacle(refusal: Refusal) -> str:
    """An obstacle with its remedy, for a reader."""
    names = servers(refusal.sids) if refusal.sids else ""
    return OBSTACLES[refusal.obstacle].format(names, names)


def safer(answer: ReconfigAnswer) -> str:
    """The safer way and the reason, without a full stop."""
    preference, ground = answer.comparison
    if answer.advised is None:
        return "`reconfig` cannot be used: " + "; ".join(refusal.obstacle.value for refusal in answer.refusals)
    if preference is Preference.NEITHER:
        return "both ways are unsafe"
    mine, theirs = answer.advised.outcome, answer.restarts.outcome
    if ground is Ground.BETTER_WITHOUT_FAULTS:
        mine, theirs = answer.advised.verdict(FaultBudget.NONE), answer.restarts.without_faults
    if preference is Preference.RECONFIG:
        return f"`reconfig` is safer than restarts here: {GROUNDS[ground].format(WORDS[mine], WORDS[theirs])}"
    return f"restarts are safer than `reconfig` here: {GROUNDS[ground].format(WORDS[theirs], WORDS[mine])}"


# The steps.


def _steps(route: RouteAnswer) -> Iterator[str]:
    numbers = count(1)
    for place, answer in enumerate(route.commands):
        if place:
            command = answer.command
            questions = "; ".join(f"echo conf | nc {_address(command, sid)}" for sid in sorted(command.before.members))
            yield from ("", CHECK, "", *fenced(f"({questions}) | grep '^version='", ""), "")
        yield from (f"{next(numbers)}. {text}" for text in _of_command(answer.command))


def _of_command(command: MembershipCommand) -> Iterator[str]:
    """The actions of the operator for a command, in order."""
    for sid in command.joiners:
        members = _block(f"server.{member}={line}" for member, line in command.file_of(sid).items())
        wait = f"{AT_PORT.name} {_address(command, sid)} ."  # in any role
        yield f"**Start server {sid}**, with {JOINER}:\n\n{members}\n\n   Wait: {code(wait)}"
    stays = min(command.before.voters & command.after.voters)
    host, _, port = _address(command, stays).rpartition(" ")
    leads = f" {HAND_OVER}" if command.before.voters - command.after.voters else ""
    if command.needed:
        promoted = servers(command.promoted)
        leads += f" {PROMOTION.format(capital(promoted), servers(command.needed), promoted)}"
    words = capital(command_words(command))
    yield (
        f"**{words}**, in {code(f'zkCli.sh -server {host}:{port}')}:\n\n{_block([command.zkcli])}\n\n"
        f"   or by kazoo: {code(command.kazoo)}. Wait for the reply; `config` shows the new members.{leads}"
    )
    for sid in command.leaving:
        yield f"**Stop server {sid}** for good."


def _block(lines: Iterable[str]) -> str:
    """Lines as a block of code in an item of a list."""
    return "\n".join(f"   {line}" for line in fenced("\n".join(lines), ""))


def _address(command: MembershipCommand, sid: Sid) -> str:
    """The host and the port of a server for its clients, with a space between them, as `nc` wants them."""
    peers, _, client = command.lines[sid].partition(";")
    host, _, port = client.rpartition(":")
    return f"{quote(peers.partition(':')[0] if host in ('', ANY_ADDRESS) else host)} {port}"


def _quorums(route: RouteAnswer) -> Iterator[str]:
    """What is said of the quorums before and after the commands of a route."""
    apart = [command.disjoint for command in route.commands if command.disjoint is not None]
    sentences = [] if apart else [QUORUMS_MEET]
    sentences += [QUORUMS_APART.format(set_text(disjoint.a), set_text(disjoint.b)) for disjoint in apart]
    yield from (f"- {RECONFIG_WORDS[route.kind]}: {sentence}" for sentence in sentences)
