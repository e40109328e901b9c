"""The compiled part of the table engine: loops over integers, which own nothing and call no function of a model.

`search_kernels` expands states and builds new ones, `hash_tables` looks up results of model functions and selects the
states that are new, and `graph_kernels` judges liveness. `jit` compiles them.
"""
