"""A node of a cluster: publications go through the log that all nodes apply in the same order.

    appender    publishers' requests, validated, to entries of the log
    follower    entries of the log, in order, to the command loop
    applier     entries to decisions: the same on every node, whenever it reads them
    command_loop, coordinator   those of a server, with these differences

Without a log, nothing of this package is imported.
"""
