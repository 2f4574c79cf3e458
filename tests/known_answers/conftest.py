"""What pytest leaves alone here."""

collect_ignore = ["nuts.py"]  # imports NumPyro, which only the slow rung needs; it holds no doctests
