"""Tables of any make as typed columns: frames, arrays and files, the kinds of their columns, names and new rows."""
