"""The study that reproduces the paper's figures and tables, at three scales."""
