# Run as `make docs` in an environment with the package and its extra: pip install -e '.[docs]'
PYTHON ?= python

.PHONY: docs docs-quick

docs:  ## the site in build/site, examples run
	$(PYTHON) -m sphinx -q -W --keep-going -c docs . build/site

docs-quick:  ## the same without running the examples, in seconds
	$(PYTHON) -m sphinx -q -W --keep-going -D plot_gallery=0 -c docs . build/site
