"""The command `completion`, and what shells ask for to complete a command line."""

COMMANDS = ()
