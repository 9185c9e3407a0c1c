"""Real traces as a simulation: read, cleaned, cut, sampled at ticks, matched to roads.

`reading` reads points from files, `cleaning` classifies them, `pieces` numbers the kept pieces,
`sampling` interpolates positions at ticks, `matching` finds the roads. `run` runs the stages.
"""
