"""The inputs of a program that reads stdin: layout, limits and guarantees, drawn and changed. See layouts.py."""
