"""`bench ap-plus`: ranges that move, as in ap-tree.txt section 5.2."""
