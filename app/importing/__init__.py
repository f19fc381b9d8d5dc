"""Import products and reviews from people's files."""
