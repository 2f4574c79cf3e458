"""Colours that colour-blind readers can tell apart, and that differ in grey (after Okabe and Ito 2008)."""

QUERY, POSITIVE, NEGATIVE = "#b2182b", "#0b5394", "#e07b00"
