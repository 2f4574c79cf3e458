"""Known answers: posteriors that quadrature, algebra or another sampler knows, against runs of the chains."""
