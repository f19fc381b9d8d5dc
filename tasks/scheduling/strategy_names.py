"""The names of the allocation strategies, for who lets a person choose: the strategies themselves bring numpy."""

STRATEGIES = (
    "feedback",
    "feedback2014",
    "balance",
    "proximity",
    "sed",
    "least_loaded",
    "round_robin",
    "hash",
    "random",
)
"""`random` stands for allocation switched off."""
