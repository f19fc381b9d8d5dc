"""Import products and reviews from files that people have."""
