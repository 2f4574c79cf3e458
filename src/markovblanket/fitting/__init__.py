"""Fitting, from a table to a posterior: model data, runs and their folders, resuming, scans, scikit-learn."""
