"""The commands of the command line; what is heavy is imported where it is used.

May import: everything.
"""
