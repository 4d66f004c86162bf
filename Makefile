# `make` prints this table of contents. Everything is set up in .venv, from hash-pinned lock files.

PYTHON ?= python3
VENV   ?= .venv
PORT   ?= 8080
SEED   ?= 1
RUNS   ?= 10
CASES  ?= 100
BIN    := $(VENV)/bin
LOCKS  := deploy/locks
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet
DEMO   := var/demo.db
RELEASE := var/release

.DEFAULT_GOAL := help
.PHONY: help demo test lint test-unit test-harness servers test-integration test-components test-pipelines test-versions test-faults test-story test-docker test-api test-training train-demo check format bench docs env lock openapi release-check release clean

help:  ## Print this help
	@echo "Find the companies that compete with a given company. Two commands to start with: make demo, make test"
	@echo
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/search  ## Index the sample companies, print one company's competitors, serve the page (ONCE=1: only print)
ifndef ONCE
	@$(BIN)/python -c 'import socket; socket.create_server(("127.0.0.1", $(PORT))).close()' 2> /dev/null \
	  || { echo "Port $(PORT) is taken, perhaps by a demo that still runs. Choose another: make demo PORT=NUMBER"; exit 1; }
endif
	@mkdir -p var
	$(BIN)/similarity ingest data/sample/companies.jsonl --index $(DEMO) --attribute sector \
	  --attribute size:ordinal=nano,micro,small,mid,large,mega --size size
	@echo
	$(BIN)/similarity similar IKEA -k 3 --reasons 2 --index $(DEMO)
ifndef ONCE
	@echo
	@echo "Open http://127.0.0.1:$(PORT) and ask about another company. Stop with Ctrl-C."
	$(BIN)/similarity serve --index $(DEMO) --port $(PORT)
endif

test: lint test-unit  ## Check style and types, run the unit, contract and service tests (no Java, torch or Beam)

lint: $(VENV)/dev  ## Check formatting, style and types (make check also mends)
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy

test-unit: $(VENV)/dev  ## Run the tests of make test alone (TESTS=tests/similarity: some of them)
	$(BIN)/pytest --ignore=tests/harness -m "not integration and not pipelines and not faults and not training and not docker" $(TESTS)

test-harness: $(VENV)/dev  ## Test the tests' own tools: installations of servers, the fault proxy, what judges the fault campaigns
	$(BIN)/pytest -m "not integration" tests/harness

servers: $(VENV)/integration  ## Fetch or build what the slower tests start (they do it themselves if need be)
	$(BIN)/python -m tests.servers.browser
	$(BIN)/python -m tests.servers.elasticsearch
	-$(BIN)/python -m tests.servers.kafka
	-$(BIN)/python -m tests.servers.prism
	-$(BIN)/python -m tests.servers.flink
	-$(BIN)/python -m tests.servers.prometheus

test-integration: test-components test-pipelines  ## Run the tests on real components: a browser, Elasticsearch, Beam, Kafka, Flink

test-components: servers  ## The first part of them: a browser, Elasticsearch, Kafka, Prometheus
	$(BIN)/pytest -m "integration and not pipelines and not nightly"

test-pipelines: servers  ## The second part: Beam, also on Prism and Flink
	$(BIN)/pytest -m "pipelines and not nightly"

test-versions: $(VENV)/integration  ## Nightly: the index on three nodes and the oldest Elasticsearch, restore, manifests on an API server, dashboards
	$(BIN)/python -m tests.servers.elasticsearch
	ELASTICSEARCH_NODES=3 $(BIN)/pytest -m integration -k "not test_any_" tests/contract
	$(BIN)/python -m tests.servers.kubernetes
	$(BIN)/pytest -m nightly
	ELASTICSEARCH_VERSION=9.2.8 $(BIN)/pytest -m integration -k "not test_any_" tests/contract

test-faults: servers  ## Kill writers, streams and servers at random moments, look for lost writes (SEED=1 RUNS=10; STORE=elasticsearch: streams into that)
	SEED=$(SEED) RUNS=$(RUNS) $(BIN)/pytest -m faults

test-story: $(VENV)/integration $(VENV)/training  ## Tell the life of a company and a model with docker-compose.yml's commands, no docker
	$(BIN)/python -m tests.end_to_end.story

test-docker: $(VENV)/integration  ## Build the images and tell the same story in containers (installs an engine if it can)
	$(BIN)/python -m tests.servers.docker
	$(BIN)/pytest -m docker
	$(BIN)/python -m tests.end_to_end.story --docker

test-api: $(VENV)/integration  ## Ask the running service all that its OpenAPI document allows and forbids (CASES=100 an operation)
	$(BIN)/python -m tests.services.api_campaign --cases $(CASES) --seed $(SEED)

test-training: $(VENV)/training  ## Compare the shipped bundle with torch (installs torch: about 6 GB)
	$(BIN)/pytest -m training

train-demo: $(VENV)/training  ## Train on the sample pairs in minutes, on a CPU; show neighbours before and after
	@mkdir -p var
	$(BIN)/python -m training.demo --output var/train-demo

check: $(VENV)/dev  ## Format, lint and type-check
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/mypy

bench: $(VENV)/integration  ## Measure index, service, pipeline and export beside their peers, in about 7 minutes
	$(BIN)/python -m benchmarks.index
	$(BIN)/python -m benchmarks.service
	$(BIN)/python -m benchmarks.pipelines --companies data/sample/companies.jsonl --count 1279
	$(BIN)/python -m similarity ingest data/sample/companies.jsonl --index var/bench.db
	$(BIN)/python -m benchmarks.export --index var/bench.db --sizes 46616 200000

env:  ## Write .env with random secrets, for docker compose up
	@$(PYTHON) -m deploy.environment

docs: $(VENV)/docs  ## Build the documents as a site in var/site, every link checked
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --config-file deploy/docs/mkdocs.yml
	@echo "To read it: $(PYTHON) -m http.server --bind 127.0.0.1 --directory var/site 8082"

openapi: $(VENV)/dev  ## Write the API's OpenAPI document after a change of routes or schemas
	$(BIN)/python -m services.search.openapi

lock: $(VENV)/lock  ## Pin all dependencies again (needs the network)
	$(BIN)/python -m deploy.lock

release-check: $(VENV)/dev  ## Build sdist and wheel, install the wheel with all its extras in a new environment, test it there
	rm -rf $(RELEASE)
	$(BIN)/hatchling build --target sdist --directory $(RELEASE)
	$(PIP) wheel --no-deps --no-build-isolation --wheel-dir $(RELEASE) $(RELEASE)/*.tar.gz
	$(BIN)/python -m venv $(RELEASE)/venv
	$(RELEASE)/venv/bin/pip install --quiet "$$(echo $(RELEASE)/*.whl)[search,client,openvino,elasticsearch,kafka]"
	$(RELEASE)/venv/bin/pip check
	RELEASE=$(RELEASE) $(BIN)/pytest tests/deploy/test_wheel.py
	@# direct_url.json names a folder of this machine.
	@command -v syft > /dev/null || { echo "No SBOM: syft is not installed (docs/releasing.md)."; exit 0; }; \
	  syft scan dir:$(RELEASE)/venv --quiet --source-name company-similarity --exclude '**/direct_url.json' \
	    --output cyclonedx-json=$(RELEASE)/sbom.cdx.json

release: release-check test-docker  ## Build and try all of a release: sdist, wheel, images, and SBOMs if there is syft
	@for name in search pipelines training; do \
	  image=company-similarity/$$name:$$($(BIN)/hatchling version) && \
	  docker build --quiet --file deploy/images/$$name.Dockerfile --tag $$image --build-arg REVISION=$$(git rev-parse HEAD) . && \
	  { ! command -v syft > /dev/null || syft scan docker:$$image --quiet --output cyclonedx-json=$(RELEASE)/$$name.cdx.json; } \
	    || exit 1; \
	done

clean:  ## Remove what the other targets made (not your data)
	rm -rf $(VENV) var .pytest_cache .mypy_cache .ruff_cache .hypothesis

# One virtual environment, filled up extra by extra; a stamp file stands for each extra.
$(VENV)/python:
	@$(PYTHON) -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "This needs Python 3.11 or newer with venv (Debian: apt install python3-venv). Name it with PYTHON=..."; exit 1; }
	@echo "Setting up $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --require-hashes -r $(LOCKS)/build.txt
	@touch $@

$(VENV)/lock: $(VENV)/python
	@$(PIP) install uv
	@touch $@

$(VENV)/%: $(LOCKS)/%.txt pyproject.toml | $(VENV)/python
	@echo "Installing $(LOCKS)/$*.txt$(if $(filter training,$*), (6 GB, some minutes)) ..."
	@$(PIP) install --require-hashes -r $<
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@
