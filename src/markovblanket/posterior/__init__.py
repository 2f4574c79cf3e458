"""The posterior of a fit: draws with named axes, edges and how sure they are, predictions, diagnostics, storage."""
