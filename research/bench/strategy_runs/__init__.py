"""What `research.bench.strategies` is made of.

`runs` simulates many runs at once; `contest` compares all strategies on all scenarios; `switched_off` leaves one
strategy out at a time; `near` is the 2010 paper's experiment.
"""
