"""The commands of `python -m checker`, in the order of the help."""

from checker.cli.command import Command
from checker.cli.commands.ensembles import HISTORY, QUORUMS, ROLLOUT, VALIDATE
from checker.cli.commands.reference import GALLERY, LISTING, PROOFS, TABLES
from checker.cli.commands.scenarios import EXPLORE, REPLAY, RUN

COMMANDS: dict[str, Command] = {
    command.name: command
    for command in (RUN, REPLAY, ROLLOUT, EXPLORE, VALIDATE, HISTORY, QUORUMS, PROOFS, TABLES, GALLERY, LISTING)
}
