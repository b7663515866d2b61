# Two commands set everything up: `make demo` and `make test`. PYTHON chooses the interpreter (3.11 or newer).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo install test check style types docs bench clean

demo: $(VENV)/installed
	$(BIN)/unmask demo --overwrite

install: $(VENV)/installed

test: check
	$(BIN)/python -m pytest -n 2 --dist worksteal

check: $(VENV)/installed-dev
	$(MAKE) --jobs 2 --no-print-directory style types

style: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/installed-dev
	$(BIN)/mypy

docs: $(VENV)/installed-dev
	$(BIN)/python docs/make_pictures.py

bench: $(VENV)/installed-dev
	$(BIN)/python bench/prepare.py $(CORPUS)
	$(BIN)/python bench/loader.py $(DATA)
	$(BIN)/python bench/lexicon.py $(CORPUS)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) torch
	$(INSTALL) -e ".[serve]"
	touch $@

$(VENV)/installed-dev: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) torch
	$(INSTALL) -e ".[dev]"
	touch $(VENV)/installed $@

clean:
	rm -rf $(VENV) demo
