"""What is best here: object indexes beside an inverted file."""
