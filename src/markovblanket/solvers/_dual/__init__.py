"""Parts of the dual solver: p x p blocks, products with the data, conjugate gradients, preconditioner."""
