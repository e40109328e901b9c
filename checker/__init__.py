"""An explicit-state model checker for models of actors, and the ensemble models it was built for."""
