"""From a table to a posterior: the data as the model takes them, the run, its folder, resuming, scans, scikit-learn."""
