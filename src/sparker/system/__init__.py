"""What the machine offers: files written whole, safe archives, memory, progress.

May import: nothing of sparker's.
"""
