"""The posterior of a fit: draws with named axes, edges, predictions, diagnostics, and how all of it is stored."""
