"""Faults drawn by a seed on a real local cluster, and what it loses, doubles or stalls (`reviewloop chaos`).

faults      the plan: seed to list of faults; pure
proxy       the connections of a program to a server, which can be slowed, silenced, or cut after a COMMIT
messages    takes Celery messages out of their queues: lost, doubled, late
world       the catalog and the products that are crawled
cluster     the programs under test, each behind connections of its own
inflict     what each kind of fault does, and how it is undone
watch       whether anything moves, and for how long nothing did
stall       whether the survivors of a fault go on in time
diagnosis   what stood still
compare     what is stored beside what a calm run of the same world stores
records     what each fault cost, and the file that a longer run goes on from
run         a run from its start to its report
"""
