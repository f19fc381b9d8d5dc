"""Nodes near a site, found from few measurements (2010 paper, GNP).

Repeated response times give one delay of a pair (`response_times`); measured delays give every site and node
coordinates (`coordinates`), and these the delays of the other pairs: for the nearest nodes of a site
(`tasks.scheduling.baselines.proximity`) and for the seconds a page should take there (`prior`).
"""
