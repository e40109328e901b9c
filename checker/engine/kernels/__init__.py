"""The compiled part of the table engine: loops over integers, which own nothing and call no function of a model.

`search_kernels` expands states and builds new ones, `memo_kernels` looks up results of model functions,
`visited_kernels` selects the states that are new, and `graph_kernels` judges liveness. `jit` compiles them.
"""
