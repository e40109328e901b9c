"""The inputs of the planner: one state of an ensemble, from where operators have it.

    sources      recognises the kind of an input, and reads it
    folders      zoo.cfg files on disk, in the layouts that operators use; the value that every input becomes
    manifests    a StatefulSet with its ConfigMaps, or a workload for each server
    operators    the resources of Strimzi and of pravega's operator
    foreign      files of other programs, each with its way out
    live         a live ensemble, by its four-letter words
    images       the zoo.cfg that a container image writes from its variables
    kubernetes   variables, the way of working of a StatefulSet, ids of servers and of pods
    pods         host names of pods, with a word for an unknown namespace
    working      the way of working: how a platform starts and restarts servers
    volumes      whether the data of a server survives its pod
    documents    YAML with lines, looked up and not converted
    generated    texts of zoo.cfg as a state, with the checks of a folder

Rule of this package: nothing is guessed. A text that is not understood is a `ConfigError` with its place. A derived
value or a default is a sentence in `Folder.taken`.
"""
