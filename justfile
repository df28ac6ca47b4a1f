# The verbs of this project. Each is a script that also runs without just.

# list the verbs
default:
    @just --list

# build and install into the active virtual environment, with everything that tests and lints need
build:
    scripts/build

# run the Rust tests, then pytest; arguments go to pytest
test *arguments:
    scripts/test {{arguments}}

# explore the policy and the primitives' cores, with CASES random cases for each property
model cases="4096":
    scripts/model {{cases}}

# run the pure crates under miri, which finds undefined behaviour
miri cases="4":
    scripts/miri {{cases}}

# run the time-boxed stress tests
stress *arguments:
    scripts/stress {{arguments}}

# run every check that needs no test run
lint:
    scripts/lint

# measure; arguments go to `python -m bench`
bench *arguments:
    scripts/bench {{arguments}}

# run every experiment of the laboratory at its small sizes
lab:
    scripts/lab-quick

# build the Rust documentation without warnings, and check all links
docs:
    scripts/docs

# build the documentation site, and try it in a browser
site *arguments:
    scripts/site {{arguments}}

# build and test with every available CPython, including Debian sid's
matrix *arguments:
    scripts/matrix {{arguments}}

# build a CPython without a GIL, and test with it
matrix-freethreaded:
    scripts/matrix-freethreaded

# build the sdist and the wheels of every platform
wheels *arguments:
    scripts/wheels {{arguments}}

# install and try the wheels of DIRECTORY where there is nothing to build with
bare-root *arguments:
    scripts/bare-root {{arguments}}

# try the wheels with CPython as distributions compile it
builds *arguments:
    scripts/builds {{arguments}}

# run everything that must hold before a change lands
ci:
    bash .ci/run
