# Everything a developer or a newcomer runs. `make` alone prints this list.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.setup-done
DOCS   := $(VENV)/.docs-done
# Modules are compiled when they are first imported: of some eight thousand, most never are.
PIP    := -qq --disable-pip-version-check --no-compile
CORE   := $(wildcard src/onchip/_core/*.cpp src/onchip/_core/*.h)
# Without build isolation a second build compiles only what changed.
# The editable install knows its modules by name: it is made anew when one comes or goes.
LIST   := build/modules.txt
_      := $(shell mkdir -p build; find src -name '*.py' | sort > $(LIST).new; \
            cmp -s $(LIST).new $(LIST) || cp $(LIST).new $(LIST))

# Tests start hundreds of processes: each would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo check format lint test docs pictures bench bench-quick fuzz wheel floor sanitize clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## make .venv with onchip, its compiled core and the developer's tools

$(STAMP): pyproject.toml requirements.lock CMakeLists.txt $(CORE) $(LIST)
	@sh scripts/preflight.sh "$(PYTHON)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install $(PIP) --upgrade pip
	@if $(BIN)/python scripts/lock.py --fits; then \
	    $(BIN)/python -m pip install $(PIP) --require-hashes --no-deps -r requirements.lock; fi
	@$(BIN)/python -m pip install $(PIP) scikit-build-core nanobind cmake ninja
	@$(BIN)/python -m pip install $(PIP) --no-build-isolation -e '.[corun,run,dev]'
	@touch $@

demo: setup ## plan, check, run and show NASNet-A (886 operators)
	@sh examples/demo.sh $(BIN)/onchip

check: lint ## the quick one: format, lint, strict types, fast tests
	@$(BIN)/python -m pytest -q -n 2 -m "not slow and not thorough"

format: setup ## rewrite the sources in the house format
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

lint: setup ## format, lint, strict types
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --no-error-summary

test: lint ## everything that must hold
	@$(BIN)/python -m pytest -q -n 2 -m "not campaign"

docs: $(DOCS) ## build the documentation site: build/docs/index.html
	@$(BIN)/python -m sphinx -q -W --keep-going -d build/doctrees docs build/docs
	@echo "build/docs/index.html"

$(DOCS): $(STAMP) pyproject.toml
	@$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["docs"], sep="\n")' > build/docs.txt
	@$(BIN)/python -m pip install $(PIP) -r build/docs.txt
	@touch $@

pictures: setup ## draw the pictures of README and documentation again (needs chromium)
	@$(BIN)/python scripts/pictures.py

bench-quick: setup ## some quarter of an hour of one core: hold the results pages to what their scripts print
	@$(BIN)/python benchmarks/results.py --quick

bench: $(DOCS) ## some hours: measure everything again, into the results pages
	@$(BIN)/python benchmarks/results.py

FUZZ_SECONDS ?= 300
fuzz: setup ## look for files that break a reader, with coverage as the guide (FUZZ_SECONDS=300)
	@cd tests && ../$(BIN)/python -m fuzz --seconds $(FUZZ_SECONDS) --folder ../build/fuzz

wheel: setup ## a manylinux wheel and the source distribution in build/wheel, proved in a fresh environment
	@sh scripts/wheel.sh

floor: wheel ## quick tests with the oldest and the newest base dependencies that pyproject.toml admits
	@sh scripts/floor.sh

sanitize: setup ## the searches' tests with _core under address and undefined-behaviour sanitizers
	@sh scripts/sanitize.sh

clean: ## remove what make made
	rm -rf $(VENV) build out .pytest_cache .mypy_cache .ruff_cache .hypothesis
