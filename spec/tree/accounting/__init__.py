"""Figures that a tree keeps about itself: the use of quotas, and the digest of all znodes."""
