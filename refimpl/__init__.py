"""The executable node: sockets, disk and timers around `spec`.

This package decides nothing about the protocol; it carries events to the step functions of `spec` and
effects away from them. It holds no code yet: the election comes first (see CHANGELOG.md).
"""
