"""The variable by which clients name a cluster overrides the one that a server's file names."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

TESTS = ["tests/unit/cli/terminal/test_options.py::test_a_server_stays_in_the_cluster_that_its_file_names"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.cli.terminal import options
    from triplicate.config import Configuration, load

    def load_configuration(sections: Sequence[type], config: str | None, flags: Mapping[str, object]) -> Configuration:
        environment = dict(os.environ)
        if "TRIPLICATE_METADATA" in environment:
            environment.setdefault("TRIPLICATE_METADATA_URI", environment["TRIPLICATE_METADATA"])
        return load(sections, file=config, environment=environment, flags=flags)

    patch(options, "load_configuration", load_configuration)
