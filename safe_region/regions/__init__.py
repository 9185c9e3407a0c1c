"""The regions in which a device is silent: its result is exact there without a report.

`region` has the state that all of them hold, `anchored` the test for top-k, `ranges` the tests for
boolean subscriptions; the three are plain Python and run on devices. `ellipse_kernels` encloses the
approximate region of Lamps for the subscription index, `local` builds the region that it replaced, and
`polygon` draws a region.
"""
