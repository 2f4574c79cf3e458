"""Frames, arrays and files as typed columns: reading them, kinds of variables, names, and recoding of new rows."""
