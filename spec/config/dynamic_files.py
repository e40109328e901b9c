"""The dynamic files of a server: the active configuration, the one seen last, and their names.

    zoo.cfg                   the static file; `dynamicConfigFile` names the file of the active configuration
    zoo.cfg.dynamic.VERSION   the active configuration; its version is in the name only
    zoo.cfg.dynamic.next      the configuration that was seen last, if it is not active; its version is inside

Rules of this module:

- Text in, text out. A node reads and writes the files.
- A static file keeps its lines and their order. Only the lines that the dynamic file replaces are left out; ZooKeeper
  also drops the comments, and writes the keys in another order.

Source: `QuorumPeerConfig.writeDynamicConfig`, `editStaticConfig`, `getVersionFromFilename`;
`QuorumPeer.makeDynamicConfigFilename`, `getNextDynamicConfigFilename`, `needEraseClientInfoFromStaticConfig`.
"""

from msgspec.structs import replace

from spec.config.ensemble import Ensemble, is_ensemble_key, parse_ensemble, render_servers, render_version
from spec.config.problems import WHITE, Findings
from spec.config.properties import read_properties
from spec.quorum import View

_CLIENT = ("clientPort", "clientPortAddress")
_ROLE, _VERSION = "peerType", "version"
DYNAMIC = "dynamicConfigFile"


def active_file(zoo_cfg: str, version: int) -> str:
    """The name of the file of an active configuration beside this static file."""
    return f"{zoo_cfg}.dynamic.{version:x}"


def next_file(zoo_cfg: str) -> str:
    """The name of the file of the configuration seen last beside this static file."""
    return f"{zoo_cfg}.dynamic.next"


def view_with_text(ensemble: Ensemble) -> View:
    """The view of an ensemble with its lines, which a node needs."""
    return replace(ensemble.view, text=render_servers(ensemble))


def ensemble_in(view: View) -> Ensemble:
    """The ensemble in the lines of a view, with the version of the view. Raises ConfigError for other lines."""
    return parse_ensemble(versioned_text(view), "configuration", standalone_enabled=False)


def versioned_text(view: View) -> str:
    """The lines of a view and its version: the file of the view seen last, and the form in packets and in the tree."""
    return f"{view.text}\n{render_version(view.version)}"


def static_text(text: str, dynamic: str, names_client: bool) -> str:
    """A static file that refers to a dynamic file.

    `names_client` says whether the dynamic file has the client address of this server; `zoo.cfg` must not repeat it.
    """
    replaced = {_ROLE, _VERSION, DYNAMIC, *(_CLIENT if names_client else ())}
    begun = {each.line: each.key.strip(WHITE) for each in read_properties(text, "zoo.cfg", Findings())}
    kept, key, continues = [], "", False
    for number, line in enumerate(text.splitlines(), start=1):
        key = begun.get(number, key if continues else "")
        continues = _is_continued(line)
        if key not in replaced and not is_ensemble_key(key):
            kept.append(line)
    return "\n".join([*kept, f"{DYNAMIC}={dynamic}"]) + "\n"


def _is_continued(line: str) -> bool:
    """Whether a line ends with a backslash that continues it on the next line."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1
