"""The defects of public reports that the model does not have: their cause in the source, and why the model lacks them.

Rules of this module:

- A history names the commits of ZooKeeper's repository. The code of each tag from 3.4.0 on was searched for the lines
  that a commit adds or removes: the affected releases are those whose code has the defect.
- A report whose cause is not established here has no history, and is unknown in every release.

Source: ZooKeeper's issues of these names, and the commits; for the missing log file, a thread of
dev@zookeeper.apache.org about release 3.6.3 (message 76836 of the archive).
"""

from collections.abc import Sequence

from spec.census.defect import Basis, Effect, Evidence, KnownDefect
from spec.releases import DefectHistory, Release, changes

_READ = (Evidence(Basis.SOURCE),)
_REPORT = (Evidence(Basis.REPORTED),)


def _seen(name: str) -> tuple[Evidence, ...]:
    """Read in the source, and seen on real servers by a measurement of files."""
    return (*_READ, Evidence(Basis.SEEN, f"python -m research.files --case {name}"))


_TRUNCATE_CLOSES = changes("3.4.4 ca4b3f356", "3.5.0 43eedab16")  # ZOOKEEPER-1489
_TREE_OF_AN_UNSTARTED_SERVER = changes("3.4.7 cfff3f06a", "3.5.1 1ec4e568c", "3.6.0 640f63f80")  # ZOOKEEPER-1907
_SYNC_FROM_LOG = changes("3.5.0 9f102d311")  # ZOOKEEPER-1413
_TRUST_EMPTY = changes("3.5.6 77496b948", "3.6.0 68c21988d")  # ZOOKEEPER-3056
_LOCAL_SESSIONS = changes("3.5.0 b71191f51")  # ZOOKEEPER-1147

_EMPTY_DISK = (
    "Give a server with a doubtful history an empty data directory (keep `myid`) while the others have a quorum."
)
_NO_FUZZ = (
    "A snapshot of the model has exactly the transactions up to its zxid: the fuzzy snapshot of a tree that changes "
    "while it is written is not modelled."
)
_NO_TREE = "The model has transactions, and no znodes, ACLs or sessions in a snapshot."
_NO_FILES = "The model has one log, and no files that a program deletes."

_LOST: Sequence[KnownDefect] = (
    KnownDefect(
        name="ZOOKEEPER-3701",
        effect=Effect.LOST,
        wrong="a TRUNC that fails leaves closed files, and the next snapshot of a synchronisation is not written, "
        "without an error; the server acknowledges what is not on its disk",
        cause="FileTxnSnapLog.truncateLog, FileSnap.serialize",
        condition="The disk of the log is full when a server is told to truncate. Pulsar had two leaders with "
        "different data.",
        remedy="Keep space free on the disk of the log. Stop a server whose disk was full, and start it again. "
        + _EMPTY_DISK,
        history=DefectHistory(changes("3.5.7 7dd25bb8b", "3.6.0 9b6badb5b"), _TRUNCATE_CLOSES),
        evidence=_READ,
        read_from=Release(3, 4, 4),
        unmodelled="The model has no TRUNC that fails: a full disk is a write of the log that fails.",
    ),
    KnownDefect(
        name="ZOOKEEPER-2872",
        effect=Effect.LOST,
        wrong="a server acknowledges NEWLEADER when the snapshot of its synchronisation is written and not forced to "
        "the disk",
        cause="Learner.syncWithLeader, FileSnap.serialize",
        condition="A machine loses power within seconds after its server was synchronised by a snapshot. A kill of the "
        "process is harmless.",
        remedy="Upgrade. Use machines with separate power. Give a server that lost power just after it joined an empty "
        "data directory (keep `myid`) while the others have a quorum.",
        history=DefectHistory(changes("3.5.10 6f6757b26", "3.6.0 0706b40af")),
        evidence=_READ,
        unmodelled="A snapshot of the model is on the disk when it is written: the page cache of the machine is not "
        "modelled.",
    ),
    KnownDefect(
        name="ZOOKEEPER-1489",
        effect=Effect.LOST,
        wrong="after a TRUNC the server goes on writing at the old place of the file; a hole stays, and the next start "
        "reads the log only up to the hole",
        cause="FileTxnSnapLog.truncateLog",
        condition="A server is told to truncate, takes writes, and restarts.",
        remedy="Upgrade. Restart a server at once after it was told to truncate.",
        history=DefectHistory(changes("3.4.4 ca4b3f356", "3.5.0 43eedab16")),
        evidence=_READ,
        unmodelled=_NO_FILES,
    ),
    KnownDefect(
        name="ZOOKEEPER-1319",
        effect=Effect.LOST,
        wrong="a new leader begins with the last proposal 0, so a follower that joins is not sent what was proposed",
        cause="Leader.lead",
        condition="An ensemble restarts, and servers join under writes.",
        remedy="Upgrade: 3.4.0 alone has it.",
        history=DefectHistory(changes("3.4.1 09112fa12", "3.5.0 22e2d238c")),
        evidence=_READ,
        unmodelled="3.4.0 alone has it, and its protocol is not modelled.",
    ),
    KnownDefect(
        name="log-file-missing",
        effect=Effect.LOST,
        wrong="a start reads the files of the log in the order of their names, and skips the transactions of a "
        "missing one",
        cause="FileTxnSnapLog.fastForwardFromEdits, FileTxnLog.FileTxnIterator.goToNextLog",
        condition="A file of the log behind the newest snapshot is deleted, by a clean-up script or by hand, and the "
        "server restarts. A report has 58,898 skipped transactions. Since 3.9.4 a server does not start with a gap "
        "within one epoch; it skips a gap that ends with an epoch, and logs `First digest mismatch`.",
        remedy="Delete no file of `version-2` but by `autopurge` or `zkCleanup.sh`. `quorate diagnose` and `quorate "
        "recover` name a gap. Give the server an empty data directory (keep `myid`) while the others have a quorum.",
        history=DefectHistory(
            reproduced=(
                Release(3, 4, 14),
                Release(3, 8, 6),
                Release(3, 9, 5),
            )
        ),
        evidence=_seen("log-file-missing"),
        unmodelled=_NO_FILES,
    ),
    KnownDefect(
        name="ZOOKEEPER-2325",
        effect=Effect.LOST,
        wrong="a server without a readable snapshot starts with what its log still has, as if that were everything",
        cause="FileTxnSnapLog.restore",
        condition="All snapshots of a server are missing or empty, as after a full disk, and old logs are purged.",
        remedy="Do not start a server that has logs and no snapshot. Give it an empty data directory (keep `myid`) "
        "while the others have a quorum.",
        history=DefectHistory(changes("3.5.3 3cdaeedf8", "3.6.0 7c51b01e8"), reproduced=(Release(3, 4, 14),)),
        evidence=_seen("ZOOKEEPER-2325"),
        unmodelled=_NO_FILES,
    ),
    KnownDefect(
        name="ZOOKEEPER-3644",
        effect=Effect.LOST,
        wrong="with `snapshot.trust.empty=true` a server without a snapshot starts empty, and does not read its log",
        cause="FileTxnSnapLog.restore",
        condition="An upgrade from 3.4 to 3.5.6 with that key, of a server that has no snapshot yet.",
        remedy="Take 3.5.7 or later for the upgrade. Do not set the key on 3.5.6.",
        history=DefectHistory(changes("3.5.7 a314855f0", "3.6.0 a5d67c8ff"), _TRUST_EMPTY[:1]),
        evidence=_READ,
        unmodelled=_NO_FILES,
    ),
    KnownDefect(
        name="ZOOKEEPER-1797",
        effect=Effect.LOST,
        wrong="the purge of old files may delete a log that is begun while the purge runs",
        cause="PurgeTxnLog.purge",
        condition="`autopurge` or `zkCleanup.sh` runs while the server begins a new log file.",
        remedy="Upgrade. Until then run the purge while the server is stopped.",
        history=DefectHistory(changes("3.4.7 2ac31e781", "3.5.0 3f8cc1b8a")),
        evidence=_READ,
        unmodelled=_NO_FILES,
    ),
    KnownDefect(
        name="ZOOKEEPER-2574",
        effect=Effect.LOST,
        wrong="the purge deletes a log that begins before the oldest kept snapshot and has transactions behind it",
        cause="PurgeTxnLog.retainNRecentSnapshots",
        condition="`autopurge` or `zkCleanup.sh` runs, and the newest snapshots cannot be read at the next start, or a "
        "follower writes one log through several snapshots.",
        remedy="Upgrade. Until then turn `autopurge` off, and delete only logs that end before the oldest kept "
        "snapshot.",
        history=DefectHistory(
            changes("3.4.10 e93d5b27f", "3.5.3 77c3c14a8", "3.6.0 762f4af65"),
            changes("3.4.7 2ac31e781", "3.5.0 3f8cc1b8a"),
        ),
        evidence=_READ,
        unmodelled=_NO_FILES,
    ),
    KnownDefect(
        name="ZOOKEEPER-3231",
        effect=Effect.LOST,
        wrong="the purge keeps the newest snapshots whether they can be read or not, and deletes the valid ones",
        cause="PurgeTxnLog.purge, FileTxnSnapLog.findNRecentSnapshots",
        condition="The newest snapshots are damaged or incomplete, as after a full disk, and the purge runs. The "
        "server does not start again, or without its oldest writes.",
        remedy="Upgrade. Until then turn `autopurge` off while a disk is full.",
        history=DefectHistory(changes("3.6.0 1ec248185", "3.7.0 2abdfbc26"), reproduced=(Release(3, 5, 10),)),
        evidence=_seen("ZOOKEEPER-3231"),
        unmodelled=_NO_FILES,
    ),
    KnownDefect(
        name="ZOOKEEPER-3082",
        effect=Effect.LOST,
        wrong="a server with a full disk leaves an empty snapshot at each try; the purge counts them, and deletes "
        "valid ones",
        cause="FileTxnSnapLog.save",
        condition="The disk of the snapshots is full, and `autopurge` is on.",
        remedy="Upgrade. Until then delete empty files `snapshot.*` before space is made, and turn `autopurge` off.",
        history=DefectHistory(changes("3.6.0 78e4a1047")),
        evidence=_READ,
        unmodelled=_NO_FILES,
    ),
)

_DIVERGED: Sequence[KnownDefect] = (
    KnownDefect(
        name="ZOOKEEPER-2355",
        effect=Effect.DIVERGED,
        wrong="a learner takes the zxid of its leader with the packet DIFF, before it has the transactions",
        cause="Learner.syncWithLeader",
        condition="The connection of a follower breaks while it is synchronised by DIFF. Ephemeral znodes of dead "
        "sessions stay at this server.",
        remedy="Restart a server whose synchronisation was interrupted.",
        history=DefectHistory(
            changes("3.4.11 1789e0d6f", "3.5.4 ca22b3db1", "3.6.0 697101810"), _TREE_OF_AN_UNSTARTED_SERVER
        ),
        evidence=_READ,
        unmodelled="It is not a variant yet: the model has no zxid beside the transactions of a synchronisation.",
    ),
    KnownDefect(
        name="ZOOKEEPER-2846",
        effect=Effect.DIVERGED,
        wrong="a leader synchronises from its log on disk, which has a gap if the leader itself once got a snapshot",
        cause="ZKDatabase.getProposalsFromTxnLog, LearnerHandler.queueCommittedProposals",
        condition="A server that is too old for the memory of the leader joins, and the leader was once synchronised "
        "by a snapshot. Since 3.9.4 the server refuses a gap within one epoch.",
        remedy="Set `zookeeper.snapshotSizeFactor=-1`: the leader then sends a snapshot.",
        history=DefectHistory(introduced=_SYNC_FROM_LOG),
        evidence=_READ,
        unmodelled="The model synchronises from the committed log and by SNAP, and not from the log on disk.",
    ),
    KnownDefect(
        name="ZOOKEEPER-2418",
        effect=Effect.DIVERGED,
        wrong="a leader that synchronises from its log on disk skips what is between the log and its memory",
        cause="LearnerHandler.syncFollower",
        condition="A server that is too old for the memory of the leader joins, and the log of the leader ends before "
        "that memory begins.",
        remedy="Set `zookeeper.snapshotSizeFactor=-1`: the leader then sends a snapshot.",
        history=DefectHistory(changes("3.6.0 4cadbb1a6"), _SYNC_FROM_LOG),
        evidence=_READ,
        unmodelled="The model synchronises from the committed log and by SNAP, and not from the log on disk.",
    ),
    KnownDefect(
        name="ZOOKEEPER-3104",
        effect=Effect.DIVERGED,
        wrong="NEWLEADER is queued before a snapshot is taken, so the snapshot has transactions beyond NEWLEADER",
        cause="LearnerHandler.run",
        condition="A server is synchronised by a snapshot under writes, and fails at once.",
        remedy="Upgrade. " + _EMPTY_DISK,
        history=DefectHistory(changes("3.5.5 427f13678", "3.6.0 148c2cd6b")),
        evidence=_READ,
        unmodelled=_NO_FUZZ,
    ),
    KnownDefect(
        name="ZOOKEEPER-1551",
        effect=Effect.DIVERGED,
        wrong="an observer forgets what it is informed of between NEWLEADER and UPTODATE",
        cause="Learner.syncWithLeader",
        condition="An observer joins under writes.",
        remedy="Restart the observer while there are no writes.",
        history=DefectHistory(changes("3.4.6 cf5781ddf", "3.5.0 adedc7a42")),
        evidence=_READ,
        unmodelled="It is not a variant yet; releases up to 3.4.5 alone have it.",
    ),
    KnownDefect(
        name="ZOOKEEPER-1367",
        effect=Effect.DIVERGED,
        wrong="a server that is being synchronised applies transactions to its tree and not to its sessions",
        cause="Learner.syncWithLeader, FinalRequestProcessor.processRequest",
        condition="An ensemble restarts while sessions begin and end. Ephemeral znodes of dead sessions stay.",
        remedy="Upgrade. Delete the stale ephemeral znodes by hand.",
        history=DefectHistory(changes("3.4.3 1b7c4fe9f", "3.5.0 73af50a8a")),
        evidence=_READ,
        unmodelled=_NO_TREE,
    ),
    KnownDefect(
        name="ZOOKEEPER-3127",
        effect=Effect.DIVERGED,
        wrong="the zxid of a snapshot may be that of a `multi` of which the snapshot has a part",
        cause="DataTree.processTxn",
        condition="A snapshot is taken while a `multi` is applied, and the server restarts from it.",
        remedy="Upgrade. " + _EMPTY_DISK,
        history=DefectHistory(changes("3.5.5 0383625b5", "3.6.0 e501d9cc6")),
        evidence=_READ,
        unmodelled=_NO_FUZZ,
    ),
    KnownDefect(
        name="ZOOKEEPER-3144",
        effect=Effect.DIVERGED,
        wrong="the zxid of a snapshot may be that of a session that the snapshot lacks, or has although it ended",
        cause="ZooKeeperServer.processTxn",
        condition="A snapshot is taken while a session begins or ends, and the server restarts from it.",
        remedy="Upgrade. " + _EMPTY_DISK,
        history=DefectHistory(changes("3.6.0 b58791016")),
        evidence=_READ,
        unmodelled=_NO_FUZZ,
    ),
    KnownDefect(
        name="ZOOKEEPER-4872",
        effect=Effect.DIVERGED,
        wrong="the command `snapshot` of the AdminServer applies the log to the tree of the running server, also what "
        "is not committed",
        cause="ZooKeeperServer.takeSnapshot, ZKDatabase.fastForwardDataBase",
        condition="`snapshot` is called at a server with a transaction that is logged and not committed, which is then "
        "truncated.",
        remedy="Call `snapshot` while there are no writes.",
        history=DefectHistory(changes("3.9.4 da1fc5156"), changes("3.9.0 b069edeb2")),
        evidence=_READ,
        unmodelled="The model has a restored snapshot, and not the command that takes one.",
    ),
    KnownDefect(
        name="ZOOKEEPER-4689",
        effect=Effect.DIVERGED,
        wrong="a snapshot may have a znode whose ACL it lacks; after the log is applied the znode may have another "
        "ACL, or none",
        cause="DataTree.createNode, ReferenceCountedACLCache",
        condition="A snapshot is taken or sent while a znode with a new ACL is created. The znode cannot be read at "
        "this server.",
        remedy="Use few different ACLs. " + _EMPTY_DISK,
        history=DefectHistory(),
        evidence=_READ,
        read_from=Release(3, 6, 0),
        unmodelled=_NO_TREE,
    ),
    KnownDefect(
        name="ZOOKEEPER-3306",
        effect=Effect.DIVERGED,
        wrong="a znode that is in a fuzzy snapshot keeps an ACL that the snapshot lacks",
        cause="DataTree.createNode",
        condition="A snapshot is taken or sent while a znode with a new ACL is created.",
        remedy="Upgrade. " + _EMPTY_DISK,
        history=DefectHistory(changes("3.6.0 46b2018db")),
        evidence=_READ,
        unmodelled=_NO_TREE,
    ),
    KnownDefect(
        name="ZOOKEEPER-3125",
        effect=Effect.DIVERGED,
        wrong="a deletion that is applied again to a fuzzy snapshot sets an older `pzxid`, so a watch of children may "
        "be lost",
        cause="DataTree.deleteNode",
        condition="A server restarts from a snapshot that was taken under deletions.",
        remedy="Upgrade. " + _EMPTY_DISK,
        history=DefectHistory(changes("3.5.5 14364ebb4", "3.6.0 6651a126c")),
        evidence=_READ,
        unmodelled=_NO_FUZZ,
    ),
    KnownDefect(
        name="ZOOKEEPER-3249",
        effect=Effect.DIVERGED,
        wrong="a creation that is applied again to a fuzzy snapshot takes `cversion` and `pzxid` back, so a "
        "sequential name may be used twice",
        cause="DataTree.createNode",
        condition="A server restarts from a snapshot that was taken while a znode was created and deleted.",
        remedy="Upgrade. " + _EMPTY_DISK,
        history=DefectHistory(changes("3.6.0 bc24f7c01")),
        evidence=_READ,
        unmodelled=_NO_FUZZ,
    ),
    KnownDefect(
        name="ZOOKEEPER-3145",
        effect=Effect.DIVERGED,
        wrong="the end of a session that is applied again to a fuzzy snapshot deletes other znodes than at first",
        cause="DataTree.killSession",
        condition="A server restarts from a snapshot that was taken while a session with ephemeral znodes ended.",
        remedy="Upgrade. " + _EMPTY_DISK,
        history=DefectHistory(changes("3.6.0 42ea26b75")),
        evidence=_READ,
        unmodelled=_NO_FUZZ,
    ),
    KnownDefect(
        name="ZOOKEEPER-2926",
        effect=Effect.DIVERGED,
        wrong="a session that is being made global is created twice, or ends before it is global; its ephemeral "
        "znodes stay",
        cause="SessionTracker, UpgradeableSessionTracker",
        condition="`localSessionsEnabled=true` with upgrades of sessions.",
        remedy="Leave `localSessionsEnabled` off.",
        history=DefectHistory(changes("3.6.0 cd209456b"), _LOCAL_SESSIONS),
        evidence=_READ,
        unmodelled="The model has no local sessions.",
    ),
    KnownDefect(
        name="ZOOKEEPER-2725",
        effect=Effect.DIVERGED,
        wrong="a local session that creates an ephemeral znode in a `multi` is not made global; the znode stays for "
        "ever",
        cause="QuorumZooKeeperServer.checkUpgradeSession",
        condition="`localSessionsEnabled=true`, and a `multi` creates an ephemeral znode.",
        remedy="Leave `localSessionsEnabled` off.",
        history=DefectHistory(changes("3.5.4 d34a94963", "3.6.0 63577ba52"), _LOCAL_SESSIONS),
        evidence=_READ,
        unmodelled="The model has no local sessions.",
    ),
    KnownDefect(
        name="ZOOKEEPER-3471",
        effect=Effect.DIVERGED,
        wrong="a session that is closed while it is made global leaves its ephemeral znodes",
        cause="ZooKeeperServer.submitRequest",
        condition="`localSessionsEnabled=true`, and a client closes its session just after its first ephemeral znode.",
        remedy="Leave `localSessionsEnabled` off.",
        history=DefectHistory(changes("3.6.0 4951a090d"), _LOCAL_SESSIONS),
        evidence=_READ,
        unmodelled="The model has no local sessions.",
    ),
    KnownDefect(
        name="ZOOKEEPER-2832",
        effect=Effect.DIVERGED,
        wrong="a server keeps an uncommitted transaction when it joins a leader with a lower zxid; reported for 3.4.9",
        cause="Learner.syncWithLeader",
        condition="A leader fails with a transaction of its own, the others change the epoch without a write, and it "
        "returns.",
        remedy=_EMPTY_DISK,
        history=None,
        evidence=_REPORT,
        unmodelled="The report has no confirmed cause. ZOOKEEPER-1549 and trunc-after-snap have the same effect.",
    ),
    KnownDefect(
        name="ZOOKEEPER-3526",
        effect=Effect.DIVERGED,
        wrong="a leader that was in read-only mode sends a TRUNC to a server that has more",
        cause="LearnerHandler.syncFollower, ReadOnlyZooKeeperServer",
        condition="`readonlymode.enabled=true`, and a server without a quorum later leads.",
        remedy="Leave `readonlymode.enabled` off.",
        history=None,
        evidence=_REPORT,
        unmodelled="The model has no read-only mode. The correction upstream is open, and the affected releases were "
        "not read.",
    ),
    KnownDefect(
        name="ZOOKEEPER-4352",
        effect=Effect.DIVERGED,
        wrong="a new server gets a DIFF from a leader that no longer has the first transactions, and lacks them",
        cause="LearnerHandler.syncFollower",
        condition="Servers are added while the leader of a young ensemble changes, as when a StatefulSet grows.",
        remedy="Add a server when all others serve. " + _EMPTY_DISK,
        history=None,
        evidence=_REPORT,
        unmodelled="The report has no confirmed cause. ZOOKEEPER-4925 has the same effect.",
    ),
    KnownDefect(
        name="ZOOKEEPER-4541",
        effect=Effect.DIVERGED,
        wrong="an ephemeral znode of a session that was closed stays at one of three servers",
        cause="not established",
        condition="Not known. The report has one case in production.",
        remedy="Compare the data of the servers after each change of the leader. " + _EMPTY_DISK,
        history=None,
        evidence=_REPORT,
        unmodelled="The report has no confirmed cause. ZOOKEEPER-4712 and trunc-after-snap have the same effect.",
    ),
    KnownDefect(
        name="ZOOKEEPER-5010",
        effect=Effect.DIVERGED,
        wrong="an ephemeral znode that the leader never had stays at followers, across changes of the leader; "
        "reported for 3.8.5",
        cause="not established",
        condition="The leader fails while an ephemeral znode is created, and the next one synchronises by DIFF.",
        remedy="Compare the data of the servers after each change of the leader. " + _EMPTY_DISK,
        history=None,
        evidence=_REPORT,
        unmodelled="The report has no confirmed cause. ZOOKEEPER-4712 has the same effect, and 3.8.5 has it.",
    ),
)

_STOPPED: Sequence[KnownDefect] = (
    KnownDefect(
        name="ZOOKEEPER-1277",
        effect=Effect.STOPPED,
        wrong="when the counter of the zxid is exhausted, the next zxid is one of the next epoch, and no server "
        "accepts it",
        cause="Leader.propose",
        condition="4,294,967,295 transactions in one epoch.",
        remedy="Restart the leader before the counter is exhausted.",
        history=DefectHistory(changes("3.4.4 a0ef2911d", "3.5.0 297517b5e")),
        evidence=_READ,
        unmodelled="A zxid of the model has a counter without a limit.",
    ),
    KnownDefect(
        name="ZOOKEEPER-4883",
        effect=Effect.STOPPED,
        wrong="when the counter of the zxid is exhausted, the leader gives up, and an election follows "
        "(ZOOKEEPER-2789 too)",
        cause="Leader.propose, XidRolloverException",
        condition="4,294,967,295 transactions in one epoch: 50 days at 1,000 writes a second.",
        remedy="Restart the leader at a time of your choice before the counter is exhausted (`Zxid:` in `srvr`).",
        history=DefectHistory(introduced=changes("3.4.4 a0ef2911d", "3.5.0 297517b5e")),
        evidence=_READ,
        unmodelled="A zxid of the model has a counter without a limit.",
    ),
    KnownDefect(
        name="ZOOKEEPER-2623",
        effect=Effect.STOPPED,
        wrong="a request `check` outside a `multi` is logged as a transaction that no server can read again",
        cause="PrepRequestProcessor.pRequest, SerializeUtils.deserializeTxn",
        condition="A client sends the operation 13 by itself: one request stops the ensemble, and no server starts "
        "again. The Java client and kazoo do not send it.",
        remedy="Let only trusted clients connect. Afterwards the logs must be cut before the request.",
        history=DefectHistory(
            changes("3.8.5 3842bd332", "3.9.3 6ed7cc75b", "master b31f77647"),
            reproduced=(
                Release(3, 4, 14),
                Release(3, 5, 10),
                Release(3, 7, 2),
                Release(3, 8, 0),
            ),
        ),
        evidence=_seen("ZOOKEEPER-2623"),
        unmodelled="The model has no bytes: each transaction of it can be read.",
    ),
    KnownDefect(
        name="ZOOKEEPER-3829",
        effect=Effect.STOPPED,
        wrong="without `reconfigEnabled` a server keeps the members that it had seen, so a leader that was added "
        "cannot commit",
        cause="QuorumPeer.setLastSeenQuorumVerifier, QuorumPeer.processReconfig",
        condition="Members change by restarts, and the new server leads (3814, 3830 and 3842 are the same).",
        remedy="Restart the leader.",
        history=DefectHistory(
            changes("3.5.9 a97526b6e", "3.6.2 48f037fde", "3.7.0 e91455c1e"), changes("3.5.0 5428cd4bc")
        ),
        evidence=_READ,
        unmodelled="The model has the rule of 3.5.9, 3.6.2 and later releases.",
    ),
    KnownDefect(
        name="ZOOKEEPER-3056",
        effect=Effect.STOPPED,
        wrong="a server with a log and without a snapshot does not start, and no key permits it",
        cause="FileTxnSnapLog.restore",
        condition="An upgrade from 3.4 of a server that has not taken a snapshot yet.",
        remedy="Restart the old release until it has written a snapshot, or copy an empty one, before the upgrade.",
        history=DefectHistory(changes("3.5.6 77496b948", "3.6.0 68c21988d"), changes("3.5.3 3cdaeedf8")),
        evidence=_READ,
        unmodelled=_NO_FILES,
    ),
    KnownDefect(
        name="ZOOKEEPER-3781",
        effect=Effect.STOPPED,
        wrong="with `snapshot.trust.empty=true` a follower writes no snapshot, and does not start when the key is "
        "removed",
        cause="Learner.syncWithLeader",
        condition="An upgrade from 3.4 with that key.",
        remedy="Keep the key until each server has a file `version-2/snapshot.*`.",
        history=DefectHistory(
            changes("3.5.10 d1ec2f346", "3.6.4 20a52137e", "3.7.1 679cc2b10", "3.8.0 1214d3bf6"), _TRUST_EMPTY
        ),
        evidence=_READ,
        unmodelled=_NO_FILES,
    ),
    KnownDefect(
        name="ZOOKEEPER-4846",
        effect=Effect.STOPPED,
        wrong="a server whose snapshot lacks an ACL of a znode that its log deletes does not start",
        cause="DataTree.createNode, DataTree.deleteNode",
        condition="A snapshot was taken while a znode with a new ACL was created and deleted.",
        remedy="Give the server an empty data directory (keep `myid`) while the others have a quorum.",
        history=DefectHistory(
            changes("3.8.5 281b5ff13", "3.9.4 4c889a231", "master 8532163df"),
            changes("3.8.4 65b91d2d9", "3.9.2 daf7cfd04"),
        ),
        evidence=_READ,
        unmodelled=_NO_TREE,
    ),
    KnownDefect(
        name="ZOOKEEPER-1573",
        effect=Effect.STOPPED,
        wrong="a server whose log creates a znode below one that its snapshot lacks does not start",
        cause="FileTxnSnapLog.processTransaction",
        condition="A snapshot was taken while znodes were created and deleted.",
        remedy="Give the server an empty data directory (keep `myid`) while the others have a quorum.",
        history=DefectHistory(changes("3.4.6 efec318a6", "3.5.0 523a77678"), changes("3.4.2 779f15dc0")),
        evidence=_READ,
        unmodelled=_NO_FUZZ,
    ),
)

REPORTED: Sequence[KnownDefect] = (*_LOST, *_DIVERGED, *_STOPPED)
"""The rows, most dangerous first."""
