"""From a table to a posterior: the data of the model, the run and its folder, resuming, scans, scikit-learn."""
