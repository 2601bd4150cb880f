"""One public map for every column: categories, bins, powers, ranges."""
