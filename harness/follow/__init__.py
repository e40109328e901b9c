"""Follows a plan of the roll-out planner on real servers, under writes and kills."""
