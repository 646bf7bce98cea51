"""Train one job of a sweep in a process of its own: `python -m umdqn.sweeps DIRECTORY NAME`."""

from umdqn.sweeps.work import main

if __name__ == "__main__":
    main()
