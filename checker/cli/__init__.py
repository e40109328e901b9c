"""The command line: what a person types, and what is printed. It decides nothing about models or verdicts."""
