# `make demo` shows what the project does, `make test` checks it; both set up their own .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: setup demo test lint types unit test-slow torture mutants bench study ranges licences docs clean
.DELETE_ON_ERROR:

setup: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml
	@echo "Setting up $(VENV) (once, about a minute)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) --editable .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	@$(PIP) --editable ".[dev]"
	@touch $@

$(VENV)/.installed-bench: $(VENV)/.installed
	@$(PIP) --editable ".[bench]"
	@touch $@

$(VENV)/.installed-docs: $(VENV)/.installed
	@$(PIP) --editable ".[docs]"
	@touch $@

demo: $(VENV)/.installed
	@$(BIN)/python examples/demo.py

test: lint types unit

lint: $(VENV)/.installed-dev
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .

types: $(VENV)/.installed-dev
	@$(BIN)/mypy

unit: $(VENV)/.installed-dev
	@$(BIN)/python -m pytest -rs -n 2 --dist loadfile -m "not slow and not torture"

# Kills and damages everything, many times, and writes the table of docs/reliability.md: about an
# hour on two cores. PART="-k kill" attacks in one way only, and leaves the other rows as they are.
torture: $(VENV)/.installed-dev
	@$(BIN)/python -m pytest -n 2 --dist loadfile -m "torture or attack" $(PART) \
		--attacks docs/reliability.json; \
	status=$$?; $(BIN)/python tools/reliability.py; exit $$status

# Whether tests notice small changes of the core; the first time, it measures what each test runs.
mutants: $(VENV)/.installed-dev
	@$(BIN)/python tools/mutants

test-slow: $(VENV)/.installed-dev
	@$(BIN)/python -m pytest -m slow

bench: $(VENV)/.installed-bench
	@$(BIN)/python benchmarks/bench.py

# The tests with the oldest and with the newest dependencies that the ranges allow.
ranges:
	@mkdir -p .ranges
	@for end in oldest newest; do \
		$(PYTHON) -m venv .ranges/$$end || exit 1; \
		python=.ranges/$$end/bin/python; pins=.ranges/$$end.txt; : > $$pins; \
		$$python -m pip install --quiet packaging || exit 1; \
		if [ $$end = oldest ]; then $$python tools/supply.py oldest > $$pins || exit 1; fi; \
		$$python -m pip install --quiet --upgrade --upgrade-strategy eager \
			--constraint $$pins --editable ".[dev]" || exit 1; \
		echo "Testing with the $$end dependencies"; \
		$$python -m pytest -n 2 --dist loadfile -m "not slow and not torture" || exit 1; \
	done

# docs/licences.md, from what is installed.
licences: $(VENV)/.installed-dev
	@$(BIN)/python tools/supply.py licences > docs/licences.md

# How true the laws of every algorithm are, five seeds each: hours on two cores, resumable.
study: $(VENV)/.installed
	@$(BIN)/umdqn study laws --out runs/laws-study

# The site: docs/_build/html/index.html. It needs no network, and warnings are errors.
docs: $(VENV)/.installed-docs
	@$(BIN)/python -m sphinx -W --keep-going -q -d docs/_build/cache docs docs/_build/html
	@echo "docs/_build/html/index.html"

clean:
	rm -rf $(VENV) docs/_build .ranges .mutants .pytest_cache .mypy_cache .ruff_cache
