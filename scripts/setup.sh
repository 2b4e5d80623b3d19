#!/usr/bin/env bash
# Makes .venv with exactly what requirements.lock names, and the programs that tests and demo call (Java 17, psql, and for the tests alone
# redis-cli, PostgreSQL's server, Go, Node and pgjdbc).
# Needs: a Python 3.11 or newer. Run by `make setup`, which leaves it out when nothing has changed since.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'setup: %s\n' "$*"; }
stop() { printf 'setup: %s\n' "$*" >&2; exit 1; }

apt_install() {
    # Installs Debian packages; fails when this is not Debian or we may not.
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    if [ -z "${apt_updated:-}" ]; then
        apt-get update -qq || say "the package lists could not be renewed; trying with the old ones"
        apt_updated=1
    fi
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

find_python() {
    for candidate in python3.11 python3.12 python3.13 python3; do
        if command -v "$candidate" >/dev/null &&
            "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return 0
        fi
    done
    return 1
}

make_environment() {
    [ -x .venv/bin/pip ] && return 0
    python=$(find_python) || stop "no Python 3.11 or newer found; install it (Debian: apt-get install python3 python3-venv) and run make setup again"
    say "making .venv with $("$python" --version)"
    if ! "$python" -m venv .venv >/dev/null 2>&1; then
        # Debian splits ensurepip off into a package of its own; a half-made folder must not pass for an environment.
        rm -rf .venv
        apt_install python3-venv && "$python" -m venv .venv ||
            stop "this Python cannot make environments; install its venv module (Debian: apt-get install python3-venv) and run make setup again"
    fi
}

install_packages() {
    stamp=.venv/.packages
    if [ -f "$stamp" ] && cmp -s requirements.lock "$stamp"; then
        return 0
    fi
    say "installing $(grep -c '^[a-zA-Z]' requirements.lock) packages from requirements.lock"
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
    cp requirements.lock "$stamp"
}

install_project() {
    # The simulator and the demonstration are packages of their own beside the library.
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation \
        --editable . --editable ./simulator --editable ./demo
}

install_postgresql() {
    # Tests start a server of their own from its programs (tests/differential). Debian's package would also make a database cluster and
    # start it with the machine: a file that postgresql-common reads says no, and is there only while the package is installed. A cluster
    # that is already there is left alone. Debian keeps the server's programs outside of the path.
    command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 && return 0
    [ "$(id -u)" = 0 ] || return 1
    local folder=/etc/postgresql-common/createcluster.d made=0 status=0
    [ -d "$folder" ] || made=1
    mkdir -p "$folder"
    printf 'create_main_cluster = false\n' >"$folder/triplicate-setup.conf"
    apt_install postgresql || status=$?
    rm -f "$folder/triplicate-setup.conf"
    [ "$made" = 0 ] || rmdir "$folder" 2>/dev/null || true
    return "$status"
}

install_programs() {
    command -v java >/dev/null || apt_install openjdk-17-jre-headless ||
        say "Java 17 is missing, Spark needs it: install it (Debian: apt-get install openjdk-17-jre-headless)"
    command -v psql >/dev/null || apt_install postgresql-client ||
        say "psql is missing, tests and \`triplicate sql\` use it: install it (Debian: apt-get install postgresql-client)"
    command -v redis-cli >/dev/null || apt_install redis-tools ||
        say "redis-cli is missing, tests use it: install it (Debian: apt-get install redis-tools)"
    install_postgresql ||
        say "PostgreSQL's server is missing, the tests compare its answers with ours: install it (Debian: apt-get install postgresql)"
}

make_environment
install_packages
install_project
install_programs
.venv/bin/python scripts/clients.py
touch .venv/.ready
say "ready: .venv/bin/triplicate"
