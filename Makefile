# make demo: install and run the main job.  make test: install and run every check (ten minutes on two cores).
# make docs: the site of the documentation, docs/_build/html/index.html, without the network.
# make quick: style, types and a part of the tests, while one writes (1 minute).
# make attack: every test with all its repetitions, before a release (an hour); writes benchmarks/attack_summary.md.
PYTHON ?= python3
NEWEST := .venv
OLDEST := .venv-oldest
OLDER := tests/whole/test_estimator_checks.py tests/transformers/test_containers.py tests/pipeline/test_pipeline.py \
	tests/pipeline/test_prediction.py tests/pipeline/test_gate_rules.py tests/interop/diffprivlib \
	tests/whole/test_synthetic_tables.py tests/mechanisms/lora \
	"tests/whole/test_documentation.py::test_code_blocks_run[lora.md]" \
	"tests/whole/test_documentation.py::test_notebooks_run[09-private-lora.ipynb]"
# A build for processors only: on other machines PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu finds it.
OLD := -e ".[test,diffprivlib,lora]" "scikit-learn==1.6.1" torch==2.13.0 "opendp[mbi]==0.16.0"
# The site runs them all, but for the one that needs torch.
NOTEBOOKS := tests/whole/test_documentation.py::test_notebooks_run
# Rooms whose tests are quick.
QUICK := $(addprefix tests/,core data privacy bounds transformers mechanisms certificate interop/sklearn pipeline plot)
# Packages have thousands of files of which few are imported: those are compiled then, once, and kept.
PIP := -m pip install --quiet --disable-pip-version-check --no-compile
# uv installs what pip would, from where pip would, in a third of the time; where it is not to be had, pip does.
UV := env UV_SYSTEM_CERTS=true $${PIP_INDEX_URL:+UV_INDEX_URL="$$PIP_INDEX_URL"} $${PIP_EXTRA_INDEX_URL:+UV_EXTRA_INDEX_URL="$$PIP_EXTRA_INDEX_URL"} \
	$${PIP_FIND_LINKS:+UV_FIND_LINKS="$$PIP_FIND_LINKS"} $${cert:+SSL_CERT_FILE="$$cert"}
# As pip does, uv trusts the system's certificates, or those of pip's configuration. What uv cannot do, pip does or says.
CERT = cert="$${PIP_CERT:-$${SSL_CERT_FILE:-$$($(1)/bin/python -m pip config get global.cert 2> /dev/null || true)}}"
export PYTHONDONTWRITEBYTECODE :=
# Two workers have one processor each: threads of linear algebra would wait for those of the other one.
ALONE := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1

# A worker compiles what it imports unless that was done before, and both workers begin at the same moment. What is wrong
# with the tests is said by them.
COLLECT := -m pytest --collect-only --imports -qq --assert=plain > /dev/null

.PHONY: demo docs test quick attack lint types unit oldest compiled compiled-oldest python clean

demo: $(NEWEST)/.demo
	$(NEWEST)/bin/ppdp demo

# Both environments are made at once. The site leaves a processor idle for half of its time, so that types and the oldest
# scikit-learn are checked beside it; then the tests have the machine for themselves.
test:
	$(MAKE) -j 2 lint types docs compiled oldest
	$(MAKE) unit

# A notebook that has not changed is not run again. Tests of the site ask whether it is newer than what it is made from.
docs: $(NEWEST)/.dev
	$(ALONE) $(NEWEST)/bin/python -m sphinx -q -j 2 -W --keep-going -d docs/_build/doctrees docs docs/_build/html
	touch docs/_build/html/index.html

quick: lint types
	$(ALONE) $(NEWEST)/bin/python -m pytest --quick -n 2 $(QUICK)

attack: $(NEWEST)/.dev
	$(NEWEST)/bin/python benchmarks/attack.py

lint: $(NEWEST)/.dev
	$(NEWEST)/bin/ruff check .
	$(NEWEST)/bin/ruff format --check .

types: $(NEWEST)/.dev
	$(NEWEST)/bin/mypy

# Asserts are plain, which is faster to import; what has failed is run once more, to say why.
unit: $(NEWEST)/.dev
	$(ALONE) $(NEWEST)/bin/python -m pytest -n 2 --assert=plain --deselect $(NOTEBOOKS) || \
	{ $(ALONE) $(NEWEST)/bin/python -m pytest --last-failed --last-failed-no-failures none; false; }

# The estimator checks once more on the oldest supported scikit-learn; diffprivlib, which needs an old one, and OpenDP, which
# needs an old Polars; and adapters of networks, since this environment is made while the other one checks types.
oldest: compiled-oldest
	$(ALONE) $(OLDEST)/bin/python -m pytest $(OLDER) -n 2 --assert=plain || \
	{ $(ALONE) $(OLDEST)/bin/python -m pytest $(OLDER) --last-failed --last-failed-no-failures none; false; }

compiled: $(NEWEST)/.dev
	$(NEWEST)/bin/python $(COLLECT) || true

compiled-oldest: $(OLDEST)/.test
	$(OLDEST)/bin/python $(COLLECT) $(filter-out %]",$(OLDER)) || true

define installed
	test -x $(1)/bin/python || $(PYTHON) -m venv $(1)
	$(1)/bin/python $(PIP) uv && $(CERT) && $(UV) $(1)/bin/uv pip install --quiet --python $(1)/bin/python $(2) 2> /dev/null || \
	$(1)/bin/python $(PIP) $(2)
	touch $@
endef

$(NEWEST)/.demo: pyproject.toml | python
	$(call installed,$(NEWEST),-e ".[demo]")

$(NEWEST)/.dev: pyproject.toml | python
	$(call installed,$(NEWEST),-e ".[dev]")
	touch $(NEWEST)/.demo

$(OLDEST)/.test: pyproject.toml Makefile | python
	$(call installed,$(OLDEST),$(OLD))

python:
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" || (echo "ppdp needs Python 3.11 or newer: make PYTHON=python3.11 ..." && exit 1)

clean:
	rm -rf $(NEWEST) $(OLDEST) artifacts docs/_build docs/examples docs/project docs/reference/api
