"""Run three continuous queries of BerlinMOD as a stream, against stationary ranges."""
