"""The model and its Gibbs sampler: the sweep, the scatter, scale moves, and the copula for mixed columns."""
