"""The pages of the site that `mkdocs build` writes, their order and languages, and the check of what is built.

The site has the paths of the repository: README.md is its front page, and the pages of `docs/` follow. A page that they
link to becomes a page too. A link to any other file leads to a copy of it as text, and a link to a folder to the list
of its files. Pages that were written into `build/gallery` take the place of those in `docs/gallery`, and
`build/stories/index.html` that of `docs/stories`. Pages of the API are made from docstrings.
"""

import posixpath
import re
from collections.abc import Iterator
from html import unescape
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
MANUAL, GALLERY, ANSWERS = "docs/README.md", "docs/gallery/README.md", "docs/answers/README.md"
API = {f"docs/api/{name}.md": name for name in ("checker.engine.model", "checker.kit", "checker.kit.register")}
SCRIPTS = {
    "assets/mermaid.min.js": "mermaid/dist/mermaid.min.js",
    "assets/iframe-worker.js": "iframe-worker/shim/index.js",
}
"""Scripts that the theme takes from another host unless the site has them: for diagrams, and for a search in a file."""
MODULES = ROOT / "tests/browser/node_modules"
LINK = re.compile(r"\]\((?![a-z]+:|#)(?P<target>[^)\s#]+)(?:#[^)\s]*)?\)")
FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
SCRIPT = re.compile(r"(<script[^<>]*>).*?</script>", re.DOTALL)
TAG = re.compile(r"<(?P<name>[a-z]\w*)\s[^<>]*>")
ATTRIBUTE = re.compile(r"\s(id|name|href|src)=\"?([^\"\s>]*)")
LOG = get_plugin_logger("site")


def source(uri: str) -> Path:
    """The file or folder of the repository with this path, or the built page in its place."""
    built = ROOT / "build" / ("stories/index.html" if uri == "docs/stories" else uri.removeprefix("docs/"))
    return built if uri.startswith(("docs/gallery/", "docs/stories")) and built.exists() else ROOT / uri


def links(uri: str, text: str = "") -> list[str]:
    """The paths in the repository that a page, or a part of its text, links to, in order."""
    text = FENCE.sub("", text or source(uri).read_text("utf-8"))
    targets = [posixpath.normpath(posixpath.join(posixpath.dirname(uri), target)) for target in LINK.findall(text)]
    return [target for target in dict.fromkeys(targets) if not target.startswith("..") and source(target).exists()]


def on_config(config: MkDocsConfig) -> None:
    """Take the order of the pages from the headings and the links of the manual."""
    config.theme.static_templates.discard("404.html")  # its links begin at the root of a server
    nav: dict[str, Any] = {"Quorate": "README.md", "Manual": MANUAL}
    placed = {ANSWERS, GALLERY, "README.md", "CONTRIBUTING.md"}
    for section in source(MANUAL).read_text("utf-8").split("\n## ")[1:]:
        title = re.split("[:\n]", section)[0]
        for uri in links(MANUAL, section):
            if uri.endswith(".md") and uri not in placed:
                pages = chapter(uri)
                placed.update(pages)
                nav.setdefault(title, []).append({Path(uri).parent.name.capitalize(): pages} if pages[1:] else uri)
    answers = [uri for uri in links(ANSWERS) if uri.startswith("docs/answers/")]
    nav["Answers"] = [ANSWERS, *(uri for uri in answers if "/en/" in uri)]
    nav["中文问答"] = [uri for uri in answers if "/zh/" in uri]
    nav["API"] = list(API)
    gallery = groupby((uri for uri in links(GALLERY) if uri.startswith("docs/gallery/")), key=posixpath.dirname)
    nav["Gallery"] = [GALLERY, *({posixpath.basename(folder): list(pages)} for folder, pages in gallery)]
    config.nav = [{title: pages} for title, pages in (*nav.items(), ("Contributing", "CONTRIBUTING.md"))]


def chapter(uri: str) -> list[str]:
    """The page, and if it is that of a folder, the other pages of the folder."""
    page = ROOT / uri
    pages = sorted(page.parent.glob("*.md")) if page.name == "README.md" else []
    return [uri, *(other.relative_to(ROOT).as_posix() for other in pages if other != page)]


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Put the pages of the repository, and what they link to, in place of the files that mkdocs has found."""
    for file in [file for file in files if file.src_dir == config.docs_dir]:
        files.remove(file)
    uris = ["README.md", *(page.relative_to(ROOT).as_posix() for page in sorted(ROOT.glob("docs/**/*.md")))]
    for uri in uris:  # grows
        uris += [link for link in links(uri) if link not in uris] if uri.endswith(".md") else []
    for uri in uris:
        path = source(uri)
        content = {"abs_src_path": str(path)} if path.is_file() else {"content": listing(path)}
        file = File.generated(config, uri, inclusion=InclusionLevel.INCLUDED, **content)
        if path.suffix not in (".md", ".svg", ".png"):
            file.dest_uri = f"{uri}/index.html" if path.suffix == ".html" else f"{uri}.txt"
        files.append(file)
    for uri, module in API.items():
        files.append(File.generated(config, uri, content=f"# `{module}`\n\n::: {module}\n"))
    for uri, path in ((uri, MODULES / name) for uri, name in SCRIPTS.items()):
        if path.exists():
            files.append(File.generated(config, uri, abs_src_path=str(path)))
        else:
            LOG.warning("%s is not there; `npm ci --prefix tests/browser --ignore-scripts` installs it", path)


def listing(folder: Path) -> str:
    """The names of what a folder contains."""
    names = [f"{path.name}/" if path.is_dir() else path.name for path in folder.iterdir() if path.name != "__pycache__"]
    return f"{folder.relative_to(ROOT)}/\n" + "".join(f"  {name}\n" for name in sorted(names))


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Take the title from the first heading. What is folded is Markdown too, and is not searched."""
    if heading := re.search("^# (.*)", markdown, re.MULTILINE):
        page.meta["title"] = heading[1].replace("`", "")
    if page.file.src_uri.startswith("docs/gallery/"):
        page.meta["search"] = {"boost": 0.5}  # many pages with the same words
    return markdown.replace("<details>", '<details markdown="1" data-search-exclude>')


def on_page_context(_: object, page: Page, config: MkDocsConfig, **__: object) -> None:
    """Write the page in its own language, and lead from an answer to the same one in the other language."""
    uri = page.file.dest_uri
    english, chinese = uri.replace("answers/zh/", "answers/en/"), uri.replace("answers/en/", "answers/zh/")
    config.theme["language"] = "en" if uri == english else "zh"
    config.extra["alternate"] = [
        {"name": "English", "lang": "en", "link": english},
        {"name": "中文", "lang": "zh", "link": chinese if english != chinese else "docs/answers/index.html"},
    ]


def on_post_build(config: MkDocsConfig) -> None:
    """Warn of each link, picture and script of a built page that is not in the site. `--strict` makes it a failure."""
    site = Path(config.site_dir)
    pages = {page: list(attributes(page)) for page in site.rglob("*.html")}
    anchors = {page: {value for _, name, value in found if name in ("id", "name")} for page, found in pages.items()}
    for page, found in pages.items():
        for tag, name, value in found:
            if name in ("href", "src") and (problem := broken(page, tag, value, anchors)):
                LOG.warning("%s: %s %s", page.relative_to(site), value, problem)


def attributes(page: Path) -> Iterator[tuple[str, str, str]]:
    """The attributes of a built page that name a place or a link: the tag, the attribute and its value."""
    for tag in TAG.finditer(SCRIPT.sub(r"\1", page.read_text("utf-8"))):
        for name, value in ATTRIBUTE.findall(tag[0]):
            yield tag["name"], name, unescape(value)


def broken(page: Path, tag: str, link: str, anchors: dict[Path, set[str]]) -> str:
    """The reason why a link of a built page leads nowhere or to another host, or an empty text."""
    url = urlsplit(link)
    if url.scheme or url.netloc:
        return "" if tag == "a" or url.scheme == "data" else "is not in the site"
    path = Path(posixpath.normpath(page.parent / unquote(url.path))) if url.path else page
    if not path.is_file():
        return "is not there"
    return "" if not url.fragment or unquote(url.fragment) in anchors[path] else "has no such anchor"
