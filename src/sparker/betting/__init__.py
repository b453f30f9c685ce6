"""Bets on a stream that may be looked at for ever: what is bet on, what was won, what was learned.

May import: engine, system.
"""
