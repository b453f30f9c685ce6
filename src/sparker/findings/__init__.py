"""From the table of toys to an answer: how sure, how many, where, which rows.

May import: calibration, nulls, statistics, engine, system.
"""
