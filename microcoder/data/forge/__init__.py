"""The test forge: stronger tests for problems, from their own references and constraints."""
