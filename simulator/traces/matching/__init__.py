"""Finding the roads that traces followed: a hidden Markov model.

Newson, Krumm: Hidden Markov Map Matching Through Noise and Sparseness, ACM GIS 2009. States are places on
roads near a point, so far off as positions err; ways between two states are about as long as the straight
line between the two points. The likeliest sequence of states is found with Viterbi's algorithm.

Differences from the paper: a vehicle may go back on its road as far as positions err, which it does when
it stands; points are not thinned out; where no way leads on, the trace goes on in a straight line, and is
matched anew from the next point; a way is not longer than the greatest speed allows, and keeps turn
restrictions (as in `simulator.network.turns`: the edges behind them are candidates of their own).

`road_grid` finds what is near, `viterbi_kernels` the likeliest states, `routes` the way between them.
"""
