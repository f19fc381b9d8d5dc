"""What must hold in a catalog beyond its shape: references, selectors, regular expressions, templates."""
