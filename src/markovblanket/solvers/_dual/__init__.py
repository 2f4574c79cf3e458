"""Compiled parts of the dual solver: small blocks, products with the data, conjugate gradients, preconditioner."""
