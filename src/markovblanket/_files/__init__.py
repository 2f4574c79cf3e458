"""Files of a run: the atomic writer, locks, checksums, and the error of a damaged file."""
