"""The Gaussian copula: latent columns behind mixed data with missing cells, and their transforms to data."""
