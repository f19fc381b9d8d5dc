"""Commands about products, their reviews and exports."""
