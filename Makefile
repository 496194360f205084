# Everything that one does with a checkout of Toolbelt. The longer roads are in scripts/.

PORT ?= 8000
export PORT

.DEFAULT_GOAL := help
.PHONY: help demo clean-demo test interop soak format bench screens fixture lock audit clean

help: ## Say what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## See Toolbelt on http://127.0.0.1:8000 with a filled database (PORT=8001 for another port)
	@scripts/demo.sh

clean-demo: ## Forget what was changed in the demo, and its login
	rm -f demo.sqlite3 demo.sqlite3-shm demo.sqlite3-wal .demo.env

test: ## Run every test and check (CI=true skips nothing)
	@scripts/test.sh

interop: ## Try frameworks and clients that others wrote on a real server (make interop ONLY="langchain google_adk" for some)
	@scripts/interop.sh $(ONLY)

soak: ## Attack and break running servers for some minutes, on SQLite and (where one answers) PostgreSQL
	@scripts/soak.sh

format: ## Put the code into its form
	@scripts/setup.sh dev
	.venv/bin/python -m ruff check --fix .
	.venv/bin/python -m ruff format .
	find templates -name '*.html' -exec .venv/bin/djade --target-version 5.2 {} +

bench: ## Measure what a question costs, and a page of the dashboard
	@scripts/setup.sh dev
	.venv/bin/python -m scripts.bench
	.venv/bin/python -m scripts.bench_http
	.venv/bin/python -m scripts.bench_mcp
	.venv/bin/python -m scripts.bench_feed
	.venv/bin/python -m scripts.bench_calls
	.venv/bin/python -m scripts.bench_pages
	.venv/bin/python -m scripts.bench_thousand

screens: ## Take the pictures in docs/screens anew
	@scripts/setup.sh dev
	.venv/bin/python -m scripts.screens

fixture: ## Build fixtures/demo.yaml anew from fixtures/demo
	@scripts/setup.sh dev
	.venv/bin/python -m scripts.make_fixture

lock: ## Choose exact versions anew (make lock UPGRADE=1 takes the newest in range)
	@scripts/setup.sh dev
	@scripts/lock.sh $(if $(UPGRADE),--upgrade)

audit: ## Ask whether a locked package has a known hole
	@scripts/setup.sh dev
	.venv/bin/python -m pip_audit --disable-pip --require-hashes --requirement requirements/base.txt

clean: ## Remove what was built; databases and settings stay
	rm -rf .venv .venv.log .interop staticfiles test-results build dist *.egg-info
	rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +
