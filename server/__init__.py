"""The server: words and sessions over the engine, durable in a store, reached by gRPC.

`core` and `session` have the state, `commands` say what changes it, `runtime` when; `store` keeps it,
`transport` carries it, `main` puts all of it together.
"""
