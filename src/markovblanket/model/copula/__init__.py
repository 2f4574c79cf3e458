"""The Gaussian copula: latent columns behind levels and missing cells, and the way to the scale of the data."""
