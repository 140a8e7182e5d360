# siteline: `make demo` shows what it does on a real kernel, `make test` runs every test.
# Both install what is missing first, and are quick when nothing changed.

export PATH := $(PATH):$(HOME)/.cargo/bin

.PHONY: demo test setup setup-test build bench docs examples lint

demo: build
	@tools/demo.sh

test: setup-test lint
	cargo test
	cargo test --no-default-features
	/usr/bin/python3 examples/generate.py --check
	tools/docs.sh --check

build: setup
	cargo build

lint: setup
	cargo fmt --check
	cargo clippy --all-targets -- -D warnings
	cargo clippy --all-targets --no-default-features -- -D warnings
	RUSTDOCFLAGS='-D warnings' cargo doc --no-deps
	RUSTDOCFLAGS='-D warnings' cargo doc --no-deps --no-default-features

setup:
	@tools/setup.sh build

setup-test:
	@tools/setup.sh test

bench: setup
	cargo bench

# What is made from other files of the repository: the examples' MLIR, the passes' reference.
examples:
	/usr/bin/python3 examples/generate.py

docs:
	tools/docs.sh
