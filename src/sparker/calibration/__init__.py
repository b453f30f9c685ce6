"""From toys to a p-value: their table, ranks, combination, stopping early, tail, store, cluster.

May import: nulls, statistics, engine, system.
"""
