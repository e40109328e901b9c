"""The replicated state machine: znodes, sessions, watches and ACLs, as pure functions on transactions."""
