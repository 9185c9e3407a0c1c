"""`nearcast serve --processes N`: nodes of a cluster on one machine, over a log on its disk.

plan         folder, ports and commands
child        a process that is started again when it ends
supervisor   starts all, keeps them running, stops them
"""
