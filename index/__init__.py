"""Indexes over flat arrays: subscriptions that an object affects, the best objects for a subscription.

`contracts` specifies every index; each structure has a folder with its layout, kernels and class. Indexes
use no wire type, no clock and no file of anybody's data. From the system they need address space
(`tables/growth.py`) and a folder for compiled kernels (`safe_region/jit`).
"""
