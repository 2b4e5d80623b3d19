"""Generates the reference page of all settings from their declarations.

Usage: python -m triplicate.config.reference [FILE]   (without FILE: to standard output)
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from triplicate.config.loader import Key, keys_of
from triplicate.config.sections import all_sections
from triplicate.config.values import number_text, type_name, value_text

INTRODUCTION = """\
# Settings

Written by `make settings` from `src/triplicate/config/`; do not edit it by hand.

Each process reads one TOML file (`--config FILE`) with one table per section. Every key is also an environment variable and a flag.
A flag wins over a variable, a variable over the file, the file over the default. An unknown key is an error that names the nearest one.
The processes of `triplicate up` do not get variables of settings that it writes for them
([a local cluster](../operations.md#a-local-cluster)).

Sizes are bytes and may be written with a unit (`"64 MiB"`, `"10 MB"`), durations likewise (`"200 ms"`, `"10 s"`, `"5 min"`, `"1 h"`,
`"7 d"`). A variable gives a list with commas; a flag is repeated. The flag of a key in the process's own section may leave the
section out: `triplicate bookie --port 3181` and `--bookie-port 3181` are the same.
"""


def page() -> str:
    """The whole page, ending with a newline."""
    lines = [line for settings in all_sections().values() for line in _section(settings)]
    return INTRODUCTION + "\n" + "\n".join(lines).rstrip() + "\n"


def _section(settings: type) -> Iterator[str]:
    keys = list(keys_of(settings))
    yield f"## [{keys[0].section}]"
    yield ""
    yield (settings.__doc__ or "").strip().splitlines()[0]
    for key in keys:
        yield ""
        yield f"### {key.path}"
        yield ""
        yield key.info.help
        yield ""
        yield from _facts(key)
    yield ""


def _facts(key: Key) -> Iterator[str]:
    default = value_text(key.default, key.info.unit)
    yield f"- type: {type_name(key.annotation)}{f', in {key.info.unit}' if key.info.unit else ''}"
    yield f"- default: {'none' if default == '-' else f'`{default}`'}"
    if key.info.choices:
        yield f"- one of: {', '.join(f'`{choice}`' for choice in key.info.choices)}"
    bounds = [f"at least {number_text(key.info.low)}"] if key.info.low is not None else []
    bounds += [f"at most {number_text(key.info.high)}"] if key.info.high is not None else []
    if bounds:
        yield f"- bounds: {', '.join(bounds)}"
    yield f"- variable `{key.variable}`, flag `{key.flag}`"
    if key.info.bookkeeper:
        yield f"- in BookKeeper: `{key.info.bookkeeper}`"


def main(arguments: list[str]) -> int:
    if arguments:
        Path(arguments[0]).write_text(page(), encoding="utf-8")
    else:
        sys.stdout.write(page())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
