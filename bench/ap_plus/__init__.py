"""Ranges that move, as in ap-tree.txt section 5.2."""
