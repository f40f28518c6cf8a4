# Everything a user needs: make report, make test, make lab, make app. The first call sets up .venv.
PYTHON ?= python3
BIN := .venv/bin
SLUG ?= neural_cpm
PRESET ?= default
OUT ?= reports

.PHONY: help report test lab app benchmark lint clean
help:
	@echo "make report     set up, run $(SLUG) and write a report to $(OUT)/ (SLUG=, PRESET=, OUT= to change)"
	@echo "make test       set up, run all tests"
	@echo "make lab        set up, open JupyterLab on the gallery"
	@echo "make app        set up, serve the explorers as web pages"
	@echo "make benchmark  speed against peers, as ratios"
	@echo "make lint       ruff on code and notebooks"

.venv/.created:
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(None if (3, 11) <= v < (3, 14) else "Python 3.11 to 3.13 is needed, %s is %d.%d: make PYTHON=python3.12 ..." % (sys.executable, *v))'
	$(PYTHON) -m venv .venv
	@touch $@

.venv/.installed: .venv/.created pyproject.toml constraints.txt
	@echo "Installing the pinned libraries into .venv (once, a few minutes) ..."
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[peers]'
	$(BIN)/python -m workbench.warm
	@touch $@

.venv/.installed-dev: .venv/.installed
	@echo "Installing the test tools into .venv (once) ..."
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

report: .venv/.installed
	$(BIN)/workbench report $(SLUG) --preset $(PRESET) --out $(OUT)

# Two workers; a file stays on one of them, so that its fixtures are made once. Speed ratios are
# measured afterwards, alone on the machine.
test: .venv/.installed-dev
	$(BIN)/pytest -n 2 --dist loadfile -m "not benchmark"
	$(BIN)/pytest -m benchmark -s

benchmark: .venv/.installed-dev
	$(BIN)/pytest -m benchmark -s

lab: .venv/.installed
	$(BIN)/workbench lab

app: .venv/.installed
	$(BIN)/workbench app

lint: .venv/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/workbench sync --check

clean:
	rm -rf .venv build dist *.egg-info reports
