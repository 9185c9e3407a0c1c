"""The server: keywords and sessions over the engine, durable in a store, reached by gRPC.

`core` and `session` have the state, `commands` define its changes, `runtime` schedules them; `store`
makes them durable, `transport` carries them, and `main` assembles the server.
"""
