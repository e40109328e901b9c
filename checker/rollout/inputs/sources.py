"""Recognises the kind of an input of the planner, and reads it.

    a folder with zoo.cfg files, or one such file       folders
    a YAML file, or a folder with YAML files            manifests, kubernetes, by `apiVersion` and `kind`
    a pipe, or /dev/stdin                               one file of either kind, by its first line
    HOST:PORT,HOST:PORT,...                             live

A path that exists is never taken as addresses. A folder with zoo.cfg files in it is one of these, whatever else it has.
A YAML file without `apiVersion` and `kind`, or a file of another program, is an error with the way out (`documents`).
The values of a Helm chart do not say of which chart they are, so they are not read either: a chart renders them.
"""

import re
from dataclasses import replace
from pathlib import Path

from checker.rollout.inputs.documents import (
    KUSTOMIZATION,
    RENDERED,
    TEXTS,
    YamlValue,
    check_folder,
    check_text,
    documents_in,
    input_error,
    no_manifest,
    read_raw,
)
from checker.rollout.inputs.folders import Folder, ServerText, read_folder, sids_in, state_of, text_of
from checker.rollout.inputs.kubernetes import read_kafka, read_zookeeper_cluster
from checker.rollout.inputs.live import is_live, is_path, read_live
from checker.rollout.inputs.manifests import kind_of, read_manifests

YAML = (".yaml", ".yml", ".json")
YAML_LINE = re.compile(rb"---|%|[{\[\xef]|[ \t]*-[ \t]|[^=]*?:(?:\s|$)")
"""The first line of YAML; a line of a zoo.cfg has a `=` before any colon."""
STREAMS = (Path("/dev"), Path("/dev/fd"), Path("/proc/self/fd"))
"""The folders with the inputs of a process; one of them may be a file without a name."""
NOTHING = "there is nothing in it"
OPERATORS = {
    "Kafka": ("kafka.strimzi.io", read_kafka),
    "ZookeeperCluster": ("zookeeper.pravega.io", read_zookeeper_cluster),
}
"""The resources of operators: the kind, the group of its `apiVersion`, and the reader."""


def read_input(text: str) -> Folder:
    """The state that an input describes. Raises ConfigError."""
    path = Path(text)
    if not is_path(path) and is_live(text):
        return read_live(text)
    # A stream is read once, from its beginning to its end: a pipe, a terminal, or an input of this process.
    if is_path(path) and not path.is_dir() and (path.parent in STREAMS or not path.is_file()):
        return _of_stream(path)
    if path.is_file():
        if path.suffix in YAML:
            return _of_documents(documents_in(read_raw(path), text), path)
        check_text(text, text_of(path) or "")
    elif path.is_dir() and not (any(path.glob("*.cfg")) or any(path.glob("*/zoo.cfg"))):
        check_folder(path, RENDERED)
        if files := sorted(file for file in path.iterdir() if file.suffix in YAML and file.is_file()):
            return _of_documents([part for file in files for part in documents_in(read_raw(file), str(file))], path)
        check_folder(path, TEXTS)
    return read_folder(path)


def _of_stream(path: Path) -> Folder:
    raw = read_raw(path)
    first = next((line for line in raw.split(b"\n") if line.strip() and line.strip()[:1] not in b"#!"), b"")
    text, is_yaml = raw.decode("iso-8859-1"), YAML_LINE.match(first) is not None  # a zoo.cfg is read so
    check_text(str(path), text, is_yaml=is_yaml)
    if first and is_yaml:
        return _of_documents(documents_in(raw, str(path)), path)
    sids = sorted(sids_in(text))
    if not sids:
        problem = "it has no server.N line, and nothing else says whose file it is" if first else NOTHING
        raise input_error(path, problem, "give a zoo.cfg with server.N lines, or manifests")
    sentences = [f"{path} for all its members ({', '.join(map(str, sids))})"]
    return state_of(str(path), [ServerText(sid, str(path), text) for sid in sids], sentences)


def _of_documents(documents: list[YamlValue], path: Path) -> Folder:
    if not documents:
        raise input_error(path, NOTHING, "name a file with manifests")
    resources = [item for document in documents if kind_of(document) for item in _items(document)]
    if not resources:
        raise no_manifest(documents[0])
    kinds = [(kind_of(resource), resource) for resource in resources]
    for kind, resource in kinds:
        if kind == "Kustomization":
            raise KUSTOMIZATION.error(resource.file, resource.line)
    ensembles = [(kind, resource) for kind, resource in kinds if kind in OPERATORS]
    if len(ensembles) > 1:
        names = ", ".join(f"{kind} in line {resource.line}" for kind, resource in ensembles)
        raise input_error(path, f"there are several ensembles in it: {names}", "give one of them")
    for kind, resource in ensembles:
        return _of_operator(kind, resource, str(path))
    return read_manifests(resources, str(path))


def _items(value: YamlValue) -> list[YamlValue]:
    """The resources of a list (`kubectl get -o yaml`), or the resource itself."""
    items = value.get("items") if kind_of(value).endswith("List") else None
    return [value] if items is None else items.items


def _of_operator(kind: str, resource: YamlValue, path: str) -> Folder:
    """The state of an operator that is known by the group of its resource. Raises ConfigError for any other."""
    (group, reader), version = OPERATORS[kind], resource.word("apiVersion")
    if version.partition("/")[0] != group:
        problem = f"the {kind} of {version} is of an operator that is not known here"
        right = f"give the workload that it makes: kubectl get statefulset,configmap -o yaml; known is {group}"
        raise resource.error(problem, right)
    state, unread = reader(resource, path), ", ".join(resource.unread)
    return replace(state, taken=(*state.taken, *([f"not read of {kind}: {unread}"] if unread else [])))
