"""The catalog: which engines and sites there are, and how they are asked and read."""
