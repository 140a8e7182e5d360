# siteline: `make demo` shows what it does on a real kernel, `make test` runs every test.
# Both install what is missing first, and are quick when nothing changed.

export PATH := $(PATH):$(HOME)/.cargo/bin

.PHONY: bench-python wheel test-python kernels demo test setup setup-test build bench docs examples lint

demo: build
	@tools/demo.sh

test: setup-test lint kernels
	/usr/bin/python3 examples/generate.py --check
	tools/docs.sh --check
	cargo test
	cargo test --no-default-features
	$(MAKE) test-python

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

# The FlyDSL and Triton examples as code objects, which the tests read, and IREE's compiler.
kernels: setup-test
	@tools/kernels.sh
	@tools/venv.sh iree

# The Python package, as python/target/wheels/siteline-*.whl. Needs no LLVM.
wheel:
	@tools/venv.sh wheel
	rm -f python/target/wheels/*.whl
	cd python && ../.venv/wheel/bin/maturin build --release --locked --out target/wheels

# The wheel in clean environments of each front end, against kernels compiled without a GPU.
test-python: wheel
	@tools/venv.sh iree triton flydsl-0.5.0 flydsl-0.1.8
	cd python && cargo fmt --check && cargo clippy --all-targets -- -D warnings
	cd python && RUSTDOCFLAGS='-D warnings' cargo doc --no-deps
	.venv/wheel/bin/python -m pytest -q python/tests

bench: setup
	cargo bench

# What siteline costs in FlyDSL's compile time.
bench-python: wheel
	@tools/venv.sh flydsl-0.5.0 flydsl-0.1.8
	@python/benches/run.sh

# What is made from other files of the repository: the examples' MLIR, the passes' reference.
examples:
	/usr/bin/python3 examples/generate.py

docs:
	tools/docs.sh
