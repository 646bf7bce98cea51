"""Analysis: numbers from runs. Exact and Monte Carlo laws, accuracy, statistics."""
