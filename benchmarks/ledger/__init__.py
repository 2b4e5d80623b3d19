"""The ledger layer beside Apache BookKeeper's, on one machine, in one run: ``make bench``.

figures.py    percentiles of latencies
ratios.py     from runs to one number per target; pure
table.py      the table that is printed; pure
machine.py    facts about the machine, memory and processor time of processes, cold files
processes.py  processes, the clients' protocol of JSON lines, and the sides of the comparison
ours.py       our bookies and client, also with a disk that can be stalled, and the bare loop
theirs.py     Apache's: jars, ZooKeeper, bookies, client
our_client.py, stalling.py   programs that run in separate processes
cases.py      the measurements, and their sizes
in_turn.py    latencies of two states, measured in alternating windows
stalled.py    the measurement with a stalled reader and a stalled disk
run.py        the whole run
"""
