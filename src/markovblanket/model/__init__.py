"""The model and its sampler: the sweep, the scatter it sees, scale moves, and the copula of mixed columns."""
