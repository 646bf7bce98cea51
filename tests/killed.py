"""`python killed.py N ARGUMENTS`: the command line, killed at the Nth touch of a file it writes.

A touch is a flush to disk or a renaming: both stand in the middle of writing a file safely.
"""

import os
import signal
import sys

from umdqn.cli.main import main

_left = int(sys.argv[1])


def _counted(function):
    def touch(*arguments):
        global _left
        _left -= 1
        if _left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments)

    return touch


os.fsync, os.replace = _counted(os.fsync), _counted(os.replace)
sys.exit(main(sys.argv[2:]))
