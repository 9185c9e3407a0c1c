"""Run the experiments of rt-tree.txt."""
