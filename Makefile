# Commands for working with a checkout of Toolbelt. The scripts are in scripts/.

PORT ?= 8000
export PORT

.DEFAULT_GOAL := help
.PHONY: help wheel package demo clean-demo check unit test interop soak format bench screens fixture lock audit clean

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## Serve the demo at http://127.0.0.1:8000 (PORT=8001 for another port)
	@scripts/demo.sh

clean-demo: ## Delete the demo's database, login and repository
	rm -f demo.sqlite3 demo.sqlite3-* demo.sqlite3.*.lock .demo.env
	rm -rf demo-repository

check: ## Check the code without running it: formatting, types, imports, templates, migrations
	@scripts/test.sh check

unit: ## Run the quick tests, which need no database
	@scripts/test.sh unit

test: ## Run every test and check (CI=true skips nothing)
	@scripts/test.sh

interop: ## Run third-party frameworks and clients against a real server (ONLY="langchain google_adk" for some)
	@scripts/interop.sh $(ONLY)

soak: ## Run the long tests that attack running servers, on SQLite and, if available, PostgreSQL
	@scripts/soak.sh

format: ## Format the code
	@scripts/setup.sh dev
	.venv/bin/python -m ruff check --fix .
	.venv/bin/python -m ruff format .
	find templates -name '*.html' -exec .venv/bin/djade --target-version 5.2 {} +

bench: ## Measure requests, the pages of the dashboard, and the start
	@scripts/setup.sh dev
	.venv/bin/python -m scripts.bench
	.venv/bin/python -m scripts.bench_http
	.venv/bin/python -m scripts.bench_mcp
	.venv/bin/python -m scripts.bench_feed
	.venv/bin/python -m scripts.bench_calls
	.venv/bin/python -m scripts.bench_conversations
	.venv/bin/python -m scripts.bench_pages
	.venv/bin/python -m scripts.bench_thousand
	.venv/bin/python -m scripts.bench_proofs
	.venv/bin/python -m scripts.bench_start

wheel: ## Build the package into dist
	@scripts/setup.sh dev
	.venv/bin/python -m pip wheel --quiet --no-deps --wheel-dir dist .

package: ## Build what is published into dist: the source package, the wheel and the notes of the release
	@scripts/setup.sh dev
	.venv/bin/python -m scripts.package

screens: ## Take screenshots, into docs/screens and build/screens
	@scripts/setup.sh dev
	.venv/bin/python -m scripts.screens

fixture: ## Build fixtures/demo.yaml from fixtures/demo
	@scripts/setup.sh dev
	.venv/bin/python -m scripts.make_fixture

lock: ## Lock exact versions (UPGRADE=1 takes the newest in range)
	@scripts/setup.sh dev
	@scripts/lock.sh $(if $(UPGRADE),--upgrade)

audit: ## Check the locked packages for known vulnerabilities
	@scripts/setup.sh dev
	.venv/bin/python -m pip_audit --disable-pip --require-hashes --requirement requirements/base.txt

clean: ## Remove everything that was built, except databases and settings
	rm -rf .venv .venv.log .interop staticfiles test-results build dist *.egg-info
	rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +
