"""Errors of standard output, whose name is in them."""

from __future__ import annotations

import os

import pytest

from triplicate.cli.terminal import pipes


def test_an_error_of_standard_output_names_it() -> None:
    descriptor = os.open("/dev/full", os.O_WRONLY)
    with pipes._NamedOutput(descriptor, "w") as output, pytest.raises(OSError, match="No space left on device: 'standard output'"):
        output.write(b"x")


def test_a_reader_that_left_is_still_a_broken_pipe() -> None:
    read, write = os.pipe()
    os.close(read)
    with pipes._NamedOutput(write, "w") as output, pytest.raises(BrokenPipeError):
        output.write(b"x")
