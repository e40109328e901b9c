"""A small program that checks certificates of proofs. It imports no solver, and nothing else of this project
but the reader of numbers of `spec.text`.

A condition is an SMT-LIB script, and is proved if the script is unsatisfiable. Its certificate is a list of steps:
instances of quantified formulas, witnesses, lemmas of equality and integer arithmetic, and clauses that follow by unit
propagation. The last one is the empty clause.

- `terms`: the terms and formulas of a script, its reader, and substitution.
- `theory`: sets of ground literals that equality or integer arithmetic refutes.
- `proof`: the steps, and the reader of certificates.

`python -m checker.certificates DIR` checks each script below a folder with its certificate.
"""
