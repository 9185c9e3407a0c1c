"""Map matching: finds the roads that traces followed, by a hidden Markov model.

Newson, Krumm: Hidden Markov Map Matching Through Noise and Sparseness, ACM GIS 2009. States are places on
roads near a point, at distances like the errors of positions; paths between two states are about as long
as the straight line between the two points. Viterbi's algorithm finds the likeliest sequence of states.

Differences from the paper: a vehicle may go back on its road as far as positions err, as it seems to do
when it stands; points are not thinned out; if no path leads on, the trace continues in a straight line,
and matching starts again at the next point; a path is not longer than the greatest speed allows, and
observes turn restrictions (as in `simulator.network.turns`: the edges behind them are candidates of their
own).

`road_grid` finds roads near a point, `viterbi_kernels` the likeliest states, `routes` the paths between
them.
"""
