"""The study of how accurate learned laws are."""
