"""Indexes over flat arrays: who is affected by an object, what is best for a subscription.

`contracts` says what every index does; a folder per structure holds its layout, kernels and class.
No wire type, no clock, no I/O is known here.
"""
