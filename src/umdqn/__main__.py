"""`python -m umdqn`: the command line."""

import sys

if not sys.flags.safe_path:
    # Python looks in the working directory first: a file there must not shadow a library.
    sys.path.append(sys.path.pop(0))

from umdqn.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
