"""Indexes over flat arrays: who is affected by an object, what is best for a subscription.

`contracts` says what every index does; a folder per structure holds its layout, kernels and class.
No wire type, no clock and no file of anybody's data is known here. What is asked of the system is address
space (`tables/growth.py`) and a folder for compiled kernels (`safe_region/jit`).
"""
