"""Pages are tested, what builds the site is not."""

collect_ignore = ["conf.py", "gallery"]
