"""Run the experiments of lamps.txt section 7, and those with anchored regions."""
