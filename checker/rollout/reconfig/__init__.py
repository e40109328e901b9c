"""The change of members by ZooKeeper's `reconfig`, beside the roll-out of files by restarts.

commands   the commands, one voter at a time or all in one, with the servers to start and to stop; and the reasons for
           which ZooKeeper would refuse them, or this planner cannot judge them
answers    the questions about a command, as scenarios, in the order of the search; the verdict on each route, and which
           way is safer

Rules of this package:

- The servers have the defects of reconfiguration that 3.9.5 has (`spec.variants`). No release is known without them.
- A command is judged from a healthy state: every member has the members before it as its active configuration. So
  the operator compares the configurations of all servers before the next command.
- A verdict is SAFE only if every run about it was explored to the end. That quorums meet is proved. It is shown,
  and settles nothing by itself: no theorem of this project is about reconfiguration.

Source: ZooKeeper Dynamic Reconfiguration Guide; `ReconfigCommand`; docs/reference-reconfig-facts.md.
"""
