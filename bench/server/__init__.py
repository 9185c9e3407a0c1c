"""A server process under load, beside a bare grpc.aio echo server in the same run."""
