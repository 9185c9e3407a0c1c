"""Measure moving ranges, as in ap-tree.txt section 5.2."""
