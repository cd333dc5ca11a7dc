# Every target installs what it needs first, so each of them works on a fresh clone.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/installed
SITE_STAMP := .venv/installed-docs
# Two processes of one thread each: the networks of the tests are too small for more. Each has half of
# the tests in their order, so that what a file shares is mostly made once; who is done takes from the other.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

.PHONY: install demo check test test-nightly docs docs-links clean

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $(STAMP)

demo: install
	$(BIN)/unitmargin demo

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: install
	$(PYTEST) -m "not nightly" --durations=10

test-nightly: install
	UNITMARGIN_CHECKED=0 $(PYTEST)

# The site opens from the file system: docs/_build/html/index.html. The tutorials run, with their pictures.
docs: $(SITE_STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -E -W --keep-going -q -b html docs docs/_build/html

$(SITE_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[docs]"
	touch $(SITE_STAMP)

# Links that lead out of the site, one a line: listed, and not asked for.
docs-links: docs
	$(BIN)/python docs/_extensions/external.py docs/_build/html

clean:
	rm -rf docs/_build docs/tutorials
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
