"""Environments: one file per family, and `catalogue.find` to get one by its name."""
