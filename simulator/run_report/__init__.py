"""A replay as one page of HTML: map, charts and figures, without a script and without a network."""
