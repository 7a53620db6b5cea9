# Every target does its own set-up: a virtual environment in .venv, filled by pip.
PYTHON ?= python3
BIN := .venv/bin
export MPLBACKEND := Agg
export NO_MKDOCS_2_WARNING := 1

.PHONY: demo test test-all bench lint docs clean

.venv/core: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	touch $@

.venv/dev: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch .venv/core $@

demo: .venv/core
	$(BIN)/leakcap demo

test: .venv/dev
	$(BIN)/python -m pytest -rs

test-all: .venv/dev
	$(BIN)/python -m pytest -rs -m ''

bench: .venv/dev
	$(BIN)/python -m benchmarks

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: .venv/dev
	$(BIN)/mkdocs build --strict --quiet

clean:
	rm -rf .venv site build leakcap-demo
