"""Calibration: compares laws with realised returns, without knowing the exact laws."""
