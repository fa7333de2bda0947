# Every target makes its own .venv when it is missing or older than pyproject.toml and constraints.txt. The benchmark
# has one of its own, .venv-bench, for the peers that it compares with are no dependencies.

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
PYTEST := $(BIN)/python -m pytest -q
BENCH := .venv-bench/bin
BENCH_STAMP := .venv-bench/.installed

.PHONY: help demo test check torture bench clean

help:
	@echo "make demo     train on a small JPEG data set while a worker is killed, then meet four failures; two minutes"
	@echo "make test     check + all tests that are not slow, with real processes and real faults"
	@echo "make check    ruff and mypy only"
	@echo "make torture  the slow tests"
	@echo "make bench    holdfast beside its peers, in one run: ratios (QUICK=1: a look of three minutes; ARGS=--list: of what)"
	@echo "make clean    remove what the tools made, .venv and .venv-bench"

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test]'
	touch $@

demo: $(STAMP)
	$(BIN)/python examples/demo.py $(ARGS)
	$(BIN)/holdfast gauntlet --only F04 --only F20 --only F28 --only f31_dead_connection

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/mypy

# A test that fails beside another one is run once more, alone: what fails then, fails. One that passes then is named
# by both runs, and is a bug of its own.
test: check
	$(PYTEST) -n 2 --dist worksteal $(ARGS) || { test $$? -eq 1 && echo "once more, alone:" && \
	$(PYTEST) -n 0 --last-failed --last-failed-no-failures none -v $(ARGS); }

torture: $(STAMP)
	$(PYTEST) -m slow $(ARGS)

$(BENCH_STAMP): pyproject.toml constraints.txt bench/requirements.txt
	test -x $(BENCH)/python || $(PYTHON) -m venv .venv-bench
	$(BENCH)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e . -r bench/requirements.txt
	touch $@

bench: $(BENCH_STAMP)
	$(BENCH)/python -m bench $(if $(QUICK),--quick) $(ARGS)

clean:
	rm -rf .venv .venv-bench bench/results/quick build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
