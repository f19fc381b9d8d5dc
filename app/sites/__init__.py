"""Test the definitions and rules of sites on real pages."""
