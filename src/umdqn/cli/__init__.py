"""The command line: parses, calls, prints. Commands import what they need when they run."""
