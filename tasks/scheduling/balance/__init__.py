"""How many URLs each of M nodes gets, from curves of their run times (2019 balance paper).

`parameters` what a node is and what a run took; `curves` run time over URLs; `exact` and `swarm` two ways to
divide; `network` curves learned from recorded runs (`layer` its equations, `marquardt` and `descent` two ways
to train it).
"""
