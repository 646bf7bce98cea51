"""Figures: laws, learning curves, statistics, calibration, episodes. Imports Matplotlib."""
