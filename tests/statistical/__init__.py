"""Calibration: the sampler against exact draws from the model, and checks that the checks can fail."""
