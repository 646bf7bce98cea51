"""Sweeps: plans of many runs, and pools of processes or a Ray cluster that train each run once."""
