"""The experiments of lamps.txt section 7, and ours beside them."""
