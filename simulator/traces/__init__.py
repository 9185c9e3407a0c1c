"""Real traces as a simulation: read, cleaned, cut, sampled at ticks, matched to roads.

`reading` makes points of files, `cleaning` judges them, `pieces` numbers what is left, `sampling` looks
positions up at ticks, `matching` finds the roads. `run` puts the stages together.
"""
