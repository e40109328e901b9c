"""Proofs that Zab is safe with mixed configurations, for every number of servers.

The subject is an *abstract* system, which this package defines. **The abstract system is proved; that `spec/zab`
refines it is checked, not proved** (`checker.refinement`). docs/explanation-proofs-of-zab.md explains the idea to
readers of the Zab paper.

- `system`: the sorts, the state, and the rigid part: reigns, epochs, servers, quorums.
- `actions`, `rollout`: the actions of servers, and those of an operator who rolls out files.
- `premises`: the assumptions on quorums.
- `invariant`: the clauses of the invariant, and its consequences.
- `conditions`, `proof`: the conditions that z3 proves, counterexamples as short stories, and the answer to the user.
  The tests have mutants, and show that the proofs are not vacuous.

z3 takes a while to load; importing this package does not load it.
"""
