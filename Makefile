# Every target sets up .venv by itself and does nothing twice.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready

.PHONY: demo test quick browser lint docs bench chaos setup clean
.DEFAULT_GOAL := help

help:
	@echo "make demo    set up, then at most four minutes on two cores: train on embedded digits, write a page"
	@echo "make test    set up, lint, check types, run all tests"
	@echo "make quick   the tests that are quick, for the inner loop"
	@echo "make lint    ruff and mypy alone"
	@echo "make docs    the pages, into docs/_build/html"
	@echo "make bench   the benchmarks: ratios against named peers"
	@echo "make chaos   kills, fuzzed files and hostile traffic, 20 to 30 minutes; table into docs/reliability.md"

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "gaussianmlr needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V 2>&1). Try: make PYTHON=python3.11 ..."; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Setting up $(VENV): a few minutes the first time, nothing afterwards"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test,lint]'
	@touch $@

demo: $(STAMP)
	@$(BIN)/gmlr demo

lint: $(STAMP)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache >/dev/null || { $(BIN)/lint-imports --no-cache; exit 1; }

# Page tests run in a real Chromium. Where it cannot be installed they are skipped, with the reason.
browser:
	@command -v chromium chromium-browser google-chrome >/dev/null 2>&1 || { \
	  echo "Installing Chromium for the tests of the pages"; \
	  { apt-get update && apt-get install -y --no-install-recommends chromium; } >/dev/null 2>&1 || \
	  echo "Could not install Chromium (it takes apt-get and root): tests of the pages in a browser will be skipped"; }

test: lint browser
	@$(BIN)/python -m pytest -n 2

# The inner loop: all tests that are not marked slow; `make test` runs the rest too.
quick: $(STAMP)
	@$(BIN)/python -m pytest -n 2 -q -m "not slow" tests

docs: $(STAMP)
	@$(BIN)/python -m sphinx -b html -W --keep-going -q docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

bench: $(STAMP)
	@for file in benchmarks/[a-z]*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

# Linux: limits of memory are read from /proc. One thread per process, two processes at a time.
chaos: $(STAMP)
	@OMP_NUM_THREADS=1 PYTHONPATH=tests $(BIN)/python -m chaos --page --out chaos.json

clean:
	rm -rf $(VENV) demo build dist docs/_build .mypy_cache .ruff_cache .pytest_cache .hypothesis
