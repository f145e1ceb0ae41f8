"""A judge on a Ray cluster."""
