# Two commands for a new clone: `make demo` shows what capsroute does, `make test` checks all of it.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: test test-long lint types clean
test: lint types
	$(BIN)/pytest -q -n 2 -m "not long"

test-long: .venv/ready
	$(BIN)/pytest -q -n 2

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/ready
	$(BIN)/pyright

# torch comes first and pinned: with it in place nothing else pulls another build.
.venv/ready: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch numpy
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

clean:
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis
