"""The live map: its speed in a browser (`speed`); pictures during a demo (`python -m bench.map`)."""
