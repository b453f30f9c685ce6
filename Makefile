# Run as `make docs` in an environment with the package and its extra: pip install -e '.[docs]'
PYTHON ?= python

.PHONY: docs docs-quick docs-requirements docs-links size

size:  ## lines of code in src by folder, without blanks, comments, imports and docstrings
	$(PYTHON) -m tests.size

docs:  ## the site in build/site; examples are run whose requirements (examples/requirements) are met
	$(PYTHON) -m sphinx -q -W --keep-going -c docs . build/site

docs-quick:  ## the same without running the examples, in seconds
	$(PYTHON) -m sphinx -q -W --keep-going -D plot_gallery=0 -c docs . build/site

# Of some packages only a file is read; their comments say that --no-deps is enough.
ALL_REQUIREMENTS = $(wildcard examples/requirements/*.txt)
FILES_ONLY = $(shell grep -l -e --no-deps $(ALL_REQUIREMENTS))

docs-requirements:  ## what the examples need of their own, so that `make docs` runs all of them
	$(PYTHON) -m pip install $(patsubst %,-r %,$(filter-out $(FILES_ONLY),$(ALL_REQUIREMENTS)))
	$(PYTHON) -m pip install --no-deps $(patsubst %,-r %,$(FILES_ONLY))

docs-links:  ## whether what the pages link to elsewhere is there; needs the network
	$(PYTHON) -m sphinx -q -b linkcheck -D plot_gallery=0 -c docs . build/links
