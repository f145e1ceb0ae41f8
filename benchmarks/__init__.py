"""What is measured: a folder for each subject, `python -m benchmarks.SUBJECT`. README.md has the table."""
