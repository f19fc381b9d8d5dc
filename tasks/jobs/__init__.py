"""The jobs of the loop: load, decide, apply. Thin, and the same for both runners."""
