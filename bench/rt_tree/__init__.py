"""The experiments of rt-tree.txt."""
