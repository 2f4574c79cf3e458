"""The whole-network competitor: its algebra, its calibration, known answers, and its door."""
