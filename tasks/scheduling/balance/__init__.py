"""Division of URLs over M nodes, by curves of their run times (2019 balance paper).

`parameters` has nodes and recorded runs, `curves` run time over URLs. `exact` and `swarm` are two ways to divide the
URLs. `learned` learns curves from recorded runs, by a small `network`.
"""
