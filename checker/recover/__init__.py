"""Recovery from lost or damaged disks: the history that can be kept, the writes that may be lost, new directories."""
