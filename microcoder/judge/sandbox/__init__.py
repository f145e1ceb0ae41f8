"""Everything that runs on the untrusted side, and the kernel calls that keep it there.

The files here import the standard library and each other only: a zygote loads them in a bare interpreter, and what
it loads is what a candidate's process could look at.
"""
