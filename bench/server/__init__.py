"""Measure a server process under load, and in the same run a bare grpc.aio echo server."""
