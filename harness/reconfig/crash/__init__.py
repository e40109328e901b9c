"""A crash at each step of a reconfiguration: one table, measured at real servers and computed by the model."""
