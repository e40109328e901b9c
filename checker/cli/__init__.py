"""The command line: the options, the commands and the printed output. It decides nothing about models or verdicts."""
