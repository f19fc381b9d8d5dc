"""The simulator: a scenario in virtual time, decided by the strategies that production runs."""
