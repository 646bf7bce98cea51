"""Runs: configuration, presets, run directories, training, and trained runs."""
