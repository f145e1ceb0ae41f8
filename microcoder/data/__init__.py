"""MicroCoder-Dataset: collect, process, filter, verify."""
