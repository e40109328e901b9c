"""The inputs of the planner: one state of an ensemble, from where operators have it.

    sources      recognises the kind of an input, and reads it
    folders      the value that every input becomes, with its checks; zoo.cfg files on disk, as operators lay them out
    manifests    a StatefulSet with its ConfigMaps, or a workload for each server
    live         a live ensemble, by its four-letter words
    images       the zoo.cfg that a container image writes from its variables
    kubernetes   parts of Kubernetes objects: variables, the way of working of a StatefulSet, the volume with the data;
                 and the resources of Strimzi and of pravega's operator
    platform     the platform: its way of working, the host names of pods, and whether the data survives them
    documents    YAML with lines, looked up and not converted; files of other programs, each with its way out

Rule of this package: nothing is guessed. A text that is not understood is a `ConfigError` with its place. A derived
value or a default is a sentence in `Folder.taken`.
"""
