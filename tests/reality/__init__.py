"""The planner against reality: changes from one seed, planned, and carried out on real servers under writes."""
