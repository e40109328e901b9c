"""The dynamic files of a server: the active configuration, the one seen last, and their names.

    zoo.cfg                   the static file; `dynamicConfigFile` names the file of the active configuration
    zoo.cfg.dynamic.VERSION   the active configuration; its version is in the name only
    zoo.cfg.dynamic.next      the configuration that was seen last, if it is not active; its version is inside

Rules of this module:

- Text in, text out. A node reads and writes the files.
- A configuration has at most `LONGEST_CONFIGURATION` bytes, whether it is read or made: it arrives from strangers, and
  reading it takes time. The lines of 255 servers are a third of that.
- A static file keeps its lines and their order. Only the lines that the dynamic file replaces are left out; ZooKeeper
  also drops the comments, and writes the keys in another order.

Source: `QuorumPeerConfig.writeDynamicConfig`, `editStaticConfig`, `getVersionFromFilename`;
`QuorumPeer.makeDynamicConfigFilename`, `getNextDynamicConfigFilename`, `needEraseClientInfoFromStaticConfig`.
"""

from collections.abc import Mapping

from msgspec.structs import replace

from spec.config.ensemble import Ensemble, is_ensemble_key, parse_ensemble, render_servers, render_version
from spec.config.problems import WHITE, ConfigError, Findings, Problem
from spec.config.properties import is_continued, natural_lines, read_properties
from spec.config.server_line import Address
from spec.quorum import View
from spec.text import INT, integer

_CLIENT = ("clientPort", "clientPortAddress")
_ROLE, _VERSION = "peerType", "version"
DYNAMIC = "dynamicConfigFile"
LONGEST_CONFIGURATION = 64 * 1024


def active_file(zoo_cfg: str, version: int) -> str:
    """The name of the file of an active configuration beside this static file."""
    return f"{zoo_cfg}.dynamic.{version:x}"


def next_file(zoo_cfg: str) -> str:
    """The name of the file of the configuration seen last beside this static file."""
    return f"{zoo_cfg}.dynamic.next"


def view_with_text(ensemble: Ensemble) -> View:
    """The view of an ensemble with its lines, which a node needs.

    Raises ConfigError for lines that are longer than a file may be, or that describe other servers, since a host is a
    text: one with a line break would add a line.
    """
    text = render_servers(ensemble)
    _check_length(text)
    right = "write hosts without blanks, backslashes, brackets and line breaks"
    try:
        again = parse_ensemble(text, "configuration", standalone_enabled=False)
    except ConfigError as error:
        raise _problem(f"the lines of the servers cannot be read again ({error.problems[0].what})", right) from None
    if (again.servers, again.view.quorums) != (ensemble.servers, ensemble.view.quorums):
        raise _problem("the lines of the servers describe other servers when they are read again", right)
    return replace(ensemble.view, text=text)


def view_in(text: str, file: str) -> View:
    """The view of a configuration text, with its lines. Raises ConfigError, whose problems name `file`.

    Only a server itself decides whether it may run standalone, so one voter with observers is no mistake here.
    """
    _check_length(text)
    return view_with_text(parse_ensemble(text, file, standalone_enabled=False))


def _check_length(text: str) -> None:
    if (size := len(text.encode("utf-8", "replace"))) > LONGEST_CONFIGURATION:
        raise _problem(f"the lines of the servers have {size:,} bytes", f"the limit is {LONGEST_CONFIGURATION:,}")


def _problem(what: str, right: str) -> ConfigError:
    return ConfigError((Problem("configuration", 0, what, right),))


def ensemble_in(view: View) -> Ensemble:
    """The ensemble in the lines of a view, with the version of the view. Raises ConfigError for other lines."""
    return parse_ensemble(versioned_text(view), "configuration", standalone_enabled=False)


def versioned_text(view: View) -> str:
    """The lines of a view and its version: the file of the view seen last, and the form in packets and in the tree."""
    return f"{view.text}\n{render_version(view.version)}"


def refers_to_dynamic_file(text: str) -> bool:
    """Whether a static file names a dynamic file."""
    return any(prop.key.strip(WHITE) == DYNAMIC for prop in read_properties(text, "zoo.cfg", Findings()))


def static_text(text: str, dynamic: str, client: Address | None) -> str:
    """A static file that refers to a dynamic file.

    `client` is the client address of this server in the dynamic file, or None. The static file must not name another
    one. One that it names by `clientPortAddress` stays if it agrees, since the node distinguishes a named wildcard
    address from a port alone (`refimpl.settings`).
    """
    properties = read_properties(text, "zoo.cfg", Findings())
    keys = {prop.line: prop.key.strip(WHITE) for prop in properties}
    values = {prop.key.strip(WHITE): prop.value.strip(WHITE) for prop in properties}
    replaced = {_ROLE, _VERSION, DYNAMIC, *(() if client is None or _names(values, client) else _CLIENT)}
    lines, key, continues = [], "", False
    for number, line in enumerate(natural_lines(text), start=1):
        key = keys.get(number, key if continues else "")
        continues = is_continued(line)
        if key not in replaced and not is_ensemble_key(key):
            lines.append(line)
    if lines and is_continued(lines[-1]):
        lines.append("")  # so that it does not continue in the line below
    escaped = dynamic.replace("\\", "\\\\")
    return "\n".join([*lines, f"{DYNAMIC}={escaped}"]) + "\n"


def _names(written: Mapping[str, str], client: Address) -> bool:
    """Whether the keys of a static file name this client address."""
    port, host = (written.get(key) for key in _CLIENT)
    return host is not None and port is not None and client == Address(host, integer(port, *INT) or 0)
