"""`python -m umdqn`: the command line."""

import sys

from umdqn.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
