"""Records the packets, the disks and the clients of an ensemble of real servers, for `python -m checker validate`."""
