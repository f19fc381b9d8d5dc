"""Which nodes are near a site, from few measurements: coordinates after the 2010 paper (GNP).

The way of a measurement: repeated response times -> `noise` -> the landmarks (`landmarks`) and every host get
coordinates (`gnp`) -> the nearest nodes of a site (`tasks.scheduling.baselines.proximity`), and what a page should
cost there (`prior`).
`vivaldi` is the modern method GNP is compared with.
"""
