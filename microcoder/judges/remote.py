"""A judge behind HTTP: `microcoder serve` on another machine."""
