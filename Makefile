# Every target stands alone on a fresh clone: it makes .venv first when that is missing or older than the lock file.

BIN := .venv/bin
READY := .venv/.ready

# Some images of containers forbid Python to keep compiled modules. Each process would then compile the sources again, and many are started.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup lock demo test quick demo-kill-test interop interop-full jitter jitter-long lint mutants sim sim-mutants fuzz crash-test bench bench-append bench-faults bench-key-value bench-layers bench-machines bench-repair bench-scale bench-spark bench-sql bench-testing bench-tls histories soak spark-versions check-deep times settings clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/\1|\2/' | while IFS='|' read -r name text; do printf '  make %-15s %s\n' "$$name" "$$text"; done

setup: $(READY) ## Make .venv with everything from requirements.lock; Java 17 and psql where they are missing

$(READY): requirements.lock pyproject.toml simulator/pyproject.toml demo/pyproject.toml scripts/setup.sh
	@scripts/setup.sh

lock: $(READY) ## Make requirements.lock again from pyproject.toml
	$(BIN)/uv pip compile --quiet --upgrade --no-strip-markers --generate-hashes --python-version 3.11 --extra dev pyproject.toml -o requirements.lock --custom-compile-command 'make lock'

demo: $(READY) ## Run the demonstration on real data; summary in build/demo/. SECURE=1: with every door protected
	$(BIN)/triplicate demo $(if $(SECURE),--secure)

test: $(READY) ## Run every check and test; results in build/test/
	@$(BIN)/python scripts/run_tests.py

quick: $(READY) ## Check what was changed in a minute and a half: style, types, house rules, near tests, 20 seeds; SINCE (the last commit)
	@$(BIN)/python -m scripts.quick $(SINCE)

demo-kill-test: $(READY) ## Kill the demonstration during its load, and start it again (five minutes)
	@$(BIN)/python scripts/run_tests.py demo-kill

interop: $(READY) ## Run against Apache BookKeeper, fetched by Maven; table in build/interop/table.md
	@$(BIN)/python scripts/interop.py 4.18.0
	@$(BIN)/python scripts/run_tests.py interop

interop-full: $(READY) ## The same with a client of the oldest release as well
	@$(BIN)/python scripts/interop.py 4.18.0 4.14.7
	@$(BIN)/python scripts/run_tests.py interop-full
	@$(BIN)/python scripts/compatibility.py interop-full

lint: $(READY) ## Check style, types and the rules of the house
	@$(BIN)/python scripts/run_tests.py lint format types house

mutants: $(READY) ## Break the code on purpose, one way at a time, and see a test turn red; SIM=1: and a seed of the simulator
	@$(BIN)/python tests/mutants/run.py
	@if [ -n "$(SIM)" ]; then $(BIN)/triplicate sim mutants --jobs 2; fi

sim: $(READY) ## Run seeds of the simulator: SEEDS (1..1000), JOBS (2)
	@$(BIN)/triplicate sim run --seeds $(or $(SEEDS),1..1000) --jobs $(or $(JOBS),2)

sim-mutants: $(READY) ## Break the code on purpose, and find the first seed of the simulator that notices
	@$(BIN)/triplicate sim mutants --jobs $(or $(JOBS),2)

crash-test: $(READY) ## Cut the power behind every write of a bookie, flip bits, fill disks, fail syncs: JOBS (2), SEEDS (3)
	@$(BIN)/python -m tests.crash.run --jobs $(or $(JOBS),2) --seeds $(or $(SEEDS),3)

jitter: $(READY) ## Run the unit and property tests with event loops that are late by chance: SEED (0); a test that fails depends on a quick machine
	CI=1 JITTER_SEED=$(or $(SEED),0) $(BIN)/python -m pytest -q -p tests.jitter tests/unit tests/property

jitter-long: $(READY) ## The same with delays of up to half a second, eight folders at a time, which mostly sleep; SEED (0); build/jitter/
	@mkdir -p build/jitter
	@ls -d tests/unit/*/ tests/unit/sql/*/ tests/property/ | grep -v '^tests/unit/sql/$$' | CI=1 JITTER_SEED=$(or $(SEED),0) JITTER_LONGEST_S=0.5 \
		xargs -P 8 -I{} sh -c 'log=build/jitter/$$(echo {} | tr / -)log; if $(BIN)/python -m pytest -q -o faulthandler_timeout=3600 -p tests.jitter {} >"$$log" 2>&1; \
		then echo "{} $$(tail -n 1 "$$log")"; else tail -n 30 "$$log"; echo "{} FAILED: $$log"; exit 1; fi'

fuzz: $(READY) ## Feed N (200000) damaged inputs to every decoder; build/fuzz/
	@$(BIN)/python -m tests.fuzz.run --inputs $(or $(N),200000)

bench: $(READY) ## Measure the ledger layer beside Apache's (45 minutes; QUICK=1: 10); table and build/bench/ledger.json
	@$(BIN)/python -m benchmarks.ledger.run $(if $(QUICK),--quick)

bench-sql: $(READY) ## Measure the SQL layer before and now beside PostgreSQL and SQLite (25 minutes; QUICK=1: 6; SECONDS; ONLY=cases; SIDES); build/bench/sql.md
	@$(BIN)/python -m benchmarks.sql.run $(if $(QUICK),--quick) $(if $(SECONDS),--seconds $(SECONDS)) $(if $(BEFORE),--before $(BEFORE)) \
		$(if $(ONLY),--only $(ONLY)) $(if $(SIDES),--sides $(SIDES))

bench-spark: $(READY) ## Measure Spark's formats beside Kafka's connector and JDBC, in turn (15 minutes; QUICK=1: 5); table and build/bench/spark.json
	@$(BIN)/python -m benchmarks.spark.run $(if $(QUICK),--quick)

bench-tls: $(READY) ## Measure appends and point reads in clear and over TLS on the same bookies; build/bench/tls_price.json
	@$(BIN)/python -m benchmarks.tls_price

bench-testing: $(READY) ## Measure how long tests wait for the fixtures of triplicate.testing (a minute); build/bench/testing_fixtures.json
	@$(BIN)/python -m benchmarks.testing_fixtures

bench-append: $(READY) ## Measure appends against a bare loop; table and build/bench/append.json
	$(BIN)/python benchmarks/append.py

bench-key-value: $(READY) ## Measure puts and gets of a key-value store beside three members of etcd, in turn (5 minutes); build/bench/key_value.json
	@$(BIN)/python -m benchmarks.key_value.run

bench-layers: $(READY) ## Measure appends to a log and commits of a database against commit BEFORE, in turn; build/bench/layers.json
	@$(BIN)/python -m benchmarks.layers --before $(BEFORE)

bench-machines: $(READY) ## Kill one machine of three, ROUNDS (10) times: how long writes stop; build/bench/machines.json
	@$(BIN)/python -m benchmarks.machines.run --rounds $(or $(ROUNDS),10)

bench-faults: $(READY) ## Kill, stop and cut off the leader's machine, ROUNDS (20) times on each store: how long writes stop (MINUTES=10: no fault, full load); build/bench/faults.json
	@$(BIN)/python -m benchmarks.machines.faults --rounds $(or $(ROUNDS),20) --load-only $(or $(MINUTES),0)

bench-repair: $(READY) ## Measure the repair of a lost bookie beside Apache's: MIB (1024) in LEDGERS (300); build/bench/repair.md
	@$(BIN)/python -m benchmarks.repair.run --mib $(or $(MIB),1024) --ledgers $(or $(LEDGERS),300)

bench-scale: $(READY) ## Measure 500 databases on one node, DATABASES (1000) on three, one of ROWS (2000000) rows (20 minutes); build/bench/
	@$(BIN)/python -m benchmarks.many_databases
	@$(BIN)/python -m benchmarks.spread_databases --databases $(or $(DATABASES),1000)
	@$(BIN)/python -m benchmarks.snapshots --rows $(or $(ROWS),2000000)

histories: $(READY) ## Kill, stop and cut off leaders and bookies beside OPS (20000) operations of databases and stores, and judge them (METADATA=zk; ROUNDS 3; eight minutes)
	@$(BIN)/python -m benchmarks.histories.run --operations $(or $(OPS),20000) --rounds $(or $(ROUNDS),3) --metadata $(or $(METADATA),sqlite)

soak: $(READY) ## Run five bookies on three hosts under faults for MINUTES (10), and judge the end (SEED; a minute more)
	@$(BIN)/python -m benchmarks.soak.run --minutes $(or $(MINUTES),10) $(if $(SEED),--seed $(SEED))

spark-versions: $(READY) ## Run the tests of Spark with PySpark 4.1 and 4.2 (ten minutes)
	@$(BIN)/python scripts/spark_versions.py

check-deep: histories crash-test fuzz jitter jitter-long mutants sim-mutants ## Run the checks that take too long for every run of the tests (three hours)
	SIM_SEEDS=300 $(BIN)/python -m pytest -q tests/simulation
	@$(BIN)/python scripts/run_tests.py process-deep spark-deep
	@$(BIN)/python scripts/spark_versions.py
	DRAWN=20000 DRAWN_FROM=1000 WRAPPED_EVERY=1 $(BIN)/python -m pytest -q tests/differential/test_drawn.py tests/differential/test_wrapped.py
	HOSTILE_EVERY=1 $(BIN)/python -m pytest -q tests/unit/sql/pg/analysis/test_calls_hostile.py

times: $(READY) ## Show the ten slowest tests of each part of the last `make test`
	@$(BIN)/python scripts/times.py

settings: $(READY) ## Write docs/reference/settings.md again
	$(BIN)/python -m triplicate.config.reference docs/reference/settings.md

clean: ## Remove what builds and tests left behind (not .venv)
	rm -rf build .mypy_cache .ruff_cache .pytest_cache .hypothesis
