"""Schedules made by hand, for defects whose counterexamples the driver cannot execute: reconfigurations and a restore.

hand_made     the record of such a schedule, and its execution: each step is reported as it is done
catalogue     the shipped scenarios that have one
servers       real servers that can be reconfigured: names, files, packets and answers
observation   what one of them shows, and waits for it
replacement   what pending, forgotten and epochs share: {1, 2, 3} gets the joiners 4 and 5
pending, forgotten, epochs, promotion, restore    the schedules of the findings E, F, G, H and I
"""
