"""Scores and lengths of objects for a subscription, and the keywords that they depend on.

`formulas` defines them in plain Python, and `kernels` compiles the same functions. `keywords` has the
normal form of a keyword, `idf` the weights of keywords by how rare they are.
"""
