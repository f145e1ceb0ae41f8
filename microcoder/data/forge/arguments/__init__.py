"""The inputs of a function: shapes, bounds and properties of its arguments, drawn and changed. See functions.py."""
