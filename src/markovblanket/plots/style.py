"""Colours that a colour-blind reader tells apart, and that differ in grey (after Okabe and Ito 2008)."""

QUERY, POSITIVE, NEGATIVE, NEUTRAL = "#b2182b", "#0b5394", "#e07b00", "0.45"
