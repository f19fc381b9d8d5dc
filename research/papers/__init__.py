"""Experiments of the papers that production does not run: other methods, compared with ours on the same data."""
