"""The ports for operators: the commands of the AdminServer over HTTP, and the metrics for Prometheus."""
