"""What a statement says of its inputs: relations, facts, formulas; for functions and for stdin alike."""
