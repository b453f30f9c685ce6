"""References larger than memory: another source of the same sums over rows.

May import: engine, system.
"""
