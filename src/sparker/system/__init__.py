"""What the machine offers: files written whole, safe archives, mapped files, memory, progress.

May import: nothing of sparker's.
"""
