# Every target installs what it needs first, so each of them works on a fresh clone.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/installed
# Two processes of one thread each: the networks of the tests are too small for more. A file stays in
# one process, so that what its tests share is made once.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile

.PHONY: install demo check test test-nightly clean

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
	$(PYTEST)

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
