"""How many URLs each of M nodes gets, from curves of their run times (2019 balance paper).

`parameters` what a node is and what a run took; `curves` run time over URLs; `exact` and `swarm` two ways to divide the
URLs; `learned` curves learned from recorded runs, by a small `network`.
"""
