# Every target sets up what it needs: a virtual environment beside the code, packages from PyPI.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
READY := .venv/.ready
BENCH := .venv/.bench
DOCS := .venv/.docs
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
TORCH := $(shell sed -n 's/.*"\(torch==[^"]*\)".*/\1/p' pyproject.toml)
STORE ?= demo/runs

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-browser chromium test-slow test-lowest lint format bench torture results replicate docs clean

help:  ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(INSTALLED): pyproject.toml
	@echo "==> setting up the virtual environment in .venv (once; a minute or two, about 0.4 GB to download)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "recombine needs Python 3.11 or newer, this is $$($(PYTHON) --version). Try: make PYTHON=python3.12"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(PIP) --editable .
	@touch $(INSTALLED)

# Beyond what users need: linters, oracles, Ray, and PyTorch. The CPU build of PyTorch is enough; the ordinary wheel for Linux
# brings gigabytes of CUDA, so it comes only where pip finds no CPU build. A build that is there already is kept.
$(READY): $(INSTALLED)
	@echo "==> installing what the tests need: linters, Ray, transformers, PyTorch for CPUs (about 0.5 GB to download, 1.6 GB on disk)"
	@$(BIN)/python -c 'import torch' 2> /dev/null || $(PIP) '$(TORCH)+cpu' > /dev/null 2>&1 || \
		echo "    pip finds no CPU build of PyTorch: on Linux the ordinary one takes 2.5 GB more. PIP_EXTRA_INDEX_URL can name an index that has it."
	@$(PIP) --editable '.[dev]'
	@touch $(READY)

$(BENCH): $(READY)
	@$(PIP) --editable '.[dev,bench]'
	@touch $(BENCH)

$(DOCS): $(INSTALLED)
	@echo "==> installing what builds the site"
	@$(PIP) --editable '.[docs,constraints]'
	@touch $(DOCS)

setup: $(READY)  ## Set up the virtual environment

demo: $(INSTALLED)  ## Train, measure and decide; leaves demo/report.html (under 4 minutes)
	@mkdir -p demo
	@echo "==> data-scaling, demo profile: does a plain network recombine what it knows?"
	@$(BIN)/recombine run data-scaling --profile demo --store $(STORE) --report demo/report.html
	@echo "==> to see the answer, its evidence and the runs behind it in a browser: $(BIN)/recombine view --store $(STORE)"

lint: $(READY)  ## ruff and pyright
	@echo "==> ruff"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@echo "==> pyright"
	@$(BIN)/basedpyright --level error

# The viewer is tested in a browser. Debian and Ubuntu have it as a package; elsewhere any Chromium will do.
chromium:
	@command -v "$${RECOMBINE_CHROMIUM:-chromium}" chromium-browser google-chrome > /dev/null || { \
		test "$$(id -u)" = 0 && command -v apt-get > /dev/null && echo "==> installing chromium for the tests of the viewer" && \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium > /dev/null; } || { \
		echo "The tests of the viewer need Chromium: 'sudo apt-get install chromium', or name a browser: RECOMBINE_CHROMIUM=/path/to/chrome make test"; exit 1; }

test-browser: $(READY) chromium  ## The tests of the viewer in headless Chromium
	@echo "==> the viewer in Chromium"
	@RECOMBINE_BROWSER_TESTS=1 $(BIN)/python -m pytest -q tests/view

test: lint chromium  ## Lint, the fast tests, and the build of the wheel (what CI runs)
	@echo "==> fast tests"
	@RECOMBINE_BROWSER_TESTS=1 $(BIN)/python -m pytest -n 2 --dist loadfile -q

test-slow: $(READY)  ## The tests that train for longer
	@echo "==> slow tests"
	@$(BIN)/python -m pytest -q -m slow

test-lowest:  ## The fast tests with the lowest versions that pyproject.toml allows
	@echo "==> setting up .venv-lowest with the lower bounds of the dependencies"
	@test -x .venv-lowest/bin/python || $(PYTHON) -m venv .venv-lowest
	@$(PYTHON) -c 'import re, tomllib; [print(re.sub(r">=([^,]+),.*", r"==\1", line)) for line in tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"]]' > .venv-lowest/lowest.txt
	@.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check --constraint .venv-lowest/lowest.txt --editable '.[dev]'
	@.venv-lowest/bin/python -m pytest -n 2 --dist loadfile -q

format: $(READY)  ## Format the code
	@$(BIN)/ruff check --fix-only .
	@$(BIN)/ruff format .

bench: $(BENCH)  ## Measure speed on this machine; prints ratios from one run
	@echo "==> benchmarks"
	@$(BIN)/python benchmarks/run.py

torture: $(READY)  ## Kills, power cuts, full disks, rot, races, interrupts; compares every bit (takes long)
	@echo "==> torture"
	@$(BIN)/python torture/run.py

results: $(READY)  ## Write docs/results and its table of verdicts from a store of laptop runs (STORE=runs)
	@$(BIN)/recombine export all --profile laptop --store $(STORE) --out docs/results
	@$(BIN)/python docs/results/into_page.py
	@$(BIN)/python docs/results/debate.py
	@$(BIN)/python docs/results/compute.py $(STORE)

replicate: $(READY)  ## Decide ten main claims, drawn at random, again with fresh seeds (hours)
	@$(BIN)/python docs/results/replicate.py --store replication

docs: $(DOCS)  ## Build the site into site/; opens from disk, search included
	@echo "==> the site: runs the notebook (once about a minute), builds every page, checks every link"
	@$(BIN)/python docs/site/build.py

clean:  ## Remove the virtual environment, the demo and the site
	rm -rf .venv demo site build
