"""The explorer's page as one file, with the spaces of its jobs: it needs no server and no Python.

Rules of this module:

- The page is that of the server. The files of `assets` have the places of files of the same name, which ask a server;
  what needs one is marked in `index.html`, and left out.
- A browser runs no modules from a file, so the modules become one script: each is a function in the order of imports.
- The page loads nothing, and its own policy forbids it to. Data is in elements that no browser runs, and cannot end
  them.
"""

import base64
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from checker.explorer.export.space import space_of
from checker.explorer.server import Handlers
from checker.local_page import assets_of
from checker.traces.html import POLICY
from checker.traces.itf import for_page
from checker.user_files import make_folder, write

SERVED = re.compile(r"<!-- served -->.*?<!-- /served -->\n?", re.DOTALL)
STYLESHEET = re.compile(r'<link rel="stylesheet" href="([\w.]+)">')
IMPORT = re.compile(r'^import (?:\* as )?(\w+|\{[^}]*\}) from "\./([\w.]+)";$', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const) (\w+))", re.MULTILINE)
SCRIPT = '<script type="module" src="app.js"></script>'
ICON = 'href="icon.svg"'


def export(handlers: Handlers, folder: Path) -> tuple[Path, int]:
    """Write the page as `index.html`; returns its path, and the number of its states.

    Raises TooManyStatesError, and OutputError.
    """
    make_folder(folder, f"--export {folder}")
    spaces = {f"space-{item.key}": space_of(item.job) for item in handlers.opened()}
    write(folder / "index.html", page({"space-jobs": handlers.jobs(), **spaces}))
    return folder / "index.html", sum(len(space["states"]) for space in spaces.values())


def page(data: Mapping[str, object]) -> str:
    """The page; `data` are the values of its elements by their ids."""
    assets = {path.lstrip("/"): content.decode() for path, (_, content) in assets_of("checker.explorer").items()}
    assets |= {file.name: file.read_text(encoding="utf-8") for file in (files(__package__) / "assets").iterdir()}
    html = SERVED.sub("", assets[""]).replace("<!-- exported", "").replace("/exported -->", "")
    html = STYLESHEET.sub(lambda match: f"<style>\n{assets[match[1]]}</style>", html)
    icon = base64.b64encode(assets["icon.svg"].encode()).decode()
    policy = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}; img-src data:">'
    html = html.replace(ICON, f'href="data:image/svg+xml;base64,{icon}"').replace(SCRIPT, policy)
    values = {
        name: for_page(json.dumps(value, separators=(",", ":"), ensure_ascii=False)) for name, value in data.items()
    }
    elements = [f'<script type="application/json" id="{name}">{text}</script>' for name, text in values.items()]
    script = f"<script>\n{bundled(assets, 'app.js')}</script>"
    return html.replace("</body>", "\n".join([*elements, script, "</body>"]))


def bundled(modules: Mapping[str, str], name: str) -> str:
    """A module and all that it imports, as one script without imports."""
    parts: dict[str, str] = {}

    def add(module: str) -> None:
        if module in parts:
            return
        source = modules[module]
        for _, imported in IMPORT.findall(source):
            add(imported)
        body = EXPORT.sub("", IMPORT.sub(r'const \1 = modules["\2"];', source))
        names = ", ".join(EXPORT.findall(source))
        parts[module] = f'modules["{module}"] = (() => {{\n{body}return {{ {names} }};\n}})();\n'

    add(name)
    return '"use strict";\nconst modules = {};\n' + "".join(parts.values())
