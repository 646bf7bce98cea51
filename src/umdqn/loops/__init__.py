"""Loops: training and evaluation programs, and how seeds share a machine."""
