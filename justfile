# TicketFlow's recipes. The processes run against DATABASE_URL and AMQP_URL, or, where those are
# not set, against the private servers of `just up`.

set positional-arguments

# dev or release
profile := "dev"
built := "--profile " + profile
cargo_run := "cargo run --quiet " + built
# Adds the addresses of the private servers to what it runs.
servers := cargo_run + " --package sandbox --bin sandbox --"

[private]
@default:
    just --list --unsorted

# Start private PostgreSQL and RabbitMQ, which stay up, and print their URLs
@up: build
    exec {{ servers }} up

# Stop the private servers and remove their data
@down: build
    exec {{ servers }} down

# Say where the private servers are and whether they run
@servers: build
    exec {{ servers }} status

# Make the tables, or bring them up to date
@migrate *ARGS: build
    exec {{ servers }} run {{ cargo_run }} --package ops -- migrate "$@"

# Declare and check exchanges and queues
@topology *ARGS: build
    exec {{ servers }} run {{ cargo_run }} --package ops -- topology "$@"

# Run the operator's tool, e.g. `just ticketflow status`
@ticketflow *ARGS: build
    exec {{ servers }} run {{ cargo_run }} --package ops -- "$@"

# Run the producer: HTTP API, or `just producer load …`, `just producer import FILE`
@producer *ARGS: build
    exec {{ servers }} run {{ cargo_run }} --package producer -- "$@"

# Run a relay, e.g. `just relay --pool acme`
@relay *ARGS: build
    exec {{ servers }} run {{ cargo_run }} --package relay -- "$@"

# Run a consumer, e.g. `just consumer --pool acme`
@consumer *ARGS: build
    exec {{ servers }} run {{ cargo_run }} --package consumer -- "$@"

# Give TENANT a pool of its own, under load too, e.g. `just scale acme --relays 2 --consumers 2`
@scale TENANT *ARGS: build
    exec {{ servers }} run deploy/scale up "$@"

# Take TENANT back to the shared pool, and end what `just scale` has started
@unscale TENANT:
    exec {{ servers }} run deploy/scale down "$@"

# Build the programs; the first time takes minutes
@build:
    cargo build {{ built }} --workspace --bins

# Everything a change has to pass: format, lints, all tests, documentation
test: lint tests docs

# Check format and lints
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --quiet -- -D warnings

# Run all tests on one pair of private servers; ARGS go to cargo test
@tests *ARGS: build
    exec {{ servers }} with cargo test --workspace --no-fail-fast --quiet "$@"

# Build the documentation; a broken link fails
docs:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet

# Measure NAME and print a table and a line of JSON: drain, latency, consume, create, growth, fairness, pinned, recover, scale
@bench NAME *ARGS:
    cargo build --release --package producer --package relay --package consumer --package ops
    exec cargo run --release --package bench -- "$@"

# The whole of it on servers of its own, with a relay killed and the broker bounced: --tickets, --seed, --keep
@demo *ARGS: build
    exec {{ cargo_run }} --package sandbox --bin demo -- "$@"

# Break servers, links and processes at random under load, and check every event: --seconds, --seed
@chaos *ARGS: build
    exec {{ cargo_run }} --package sandbox --bin chaos -- "$@"

# Send the HTTP API thousands of requests that schemathesis (from PyPI) makes from its OpenAPI document
@fuzz *ARGS: build
    exec deploy/fuzz "$@"

# Plant known bugs one by one and show that a test catches each; the last line is JSON
@mutants *ARGS:
    exec deploy/mutants "$@"
