# The verbs of this project; each is a script that also runs without just.

# list the verbs
default:
    @just --list

# build and install into the active virtual environment, with all that tests and lints need
build:
    scripts/build

# the Rust tests, then pytest; arguments go to pytest
test *arguments:
    scripts/test {{arguments}}

# explore the policy and the primitives' cores, with CASES random cases a property
model cases="4096":
    scripts/model {{cases}}

# the pure crates under miri, which finds undefined behaviour
miri cases="4":
    scripts/miri {{cases}}

# the time-boxed stress tests
stress *arguments:
    scripts/stress {{arguments}}

# every check that needs no test run
lint:
    scripts/lint

# measure; arguments go to `python -m bench`
bench *arguments:
    scripts/bench {{arguments}}

# every experiment of the laboratory at its small sizes
lab:
    scripts/lab-quick

# rustdoc without warnings, and no dead link
docs:
    scripts/docs

# build and test with every CPython at hand, Debian sid's included
matrix *arguments:
    scripts/matrix {{arguments}}

# build a CPython without a GIL, and test with it
matrix-freethreaded:
    scripts/matrix-freethreaded

# all that must hold before a change lands
ci:
    bash .ci/run
