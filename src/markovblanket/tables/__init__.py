"""Frames, arrays and files as typed columns: their kinds, their names, and new rows in the same terms."""
