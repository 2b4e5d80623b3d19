"""The place of a process's audit log: a file that only its owner may read, standard error, or none."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler

from triplicate.errors import EnvironmentFault
from triplicate.security import AUDIT_LOGGER

OLD_FILES = 9
STDERR = "stderr"


class PrivateFileHandler(RotatingFileHandler):
    """Appends to a file with mode 0600, and renames it at a size."""

    def reopen(self) -> None:
        """Let the next line open the file again."""
        with self.lock or contextlib.nullcontext():
            if self.stream is not None:
                self.stream.close()
                self.stream = None

    def _open(self) -> TextIOWrapper:
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.fchmod(descriptor, 0o600)
            return open(descriptor, "a", encoding=self.encoding)
        except BaseException:
            os.close(descriptor)
            raise


def configure_audit_log(place: str, limit_bytes: int) -> None:
    """Send the audit log of this process to a place.

    Args:
        place: a file, ``stderr``, or empty for no audit log.
        limit_bytes: size of the file at which it is renamed; `OLD_FILES` of them are kept.

    Raises:
        EnvironmentFault: the file cannot be written.
    """
    logger = logging.getLogger(AUDIT_LOGGER)
    logger.propagate = False
    for old in list(logger.handlers):
        logger.removeHandler(old)
        old.close()
    logger.setLevel(logging.INFO if place else logging.CRITICAL)
    if not place:
        return
    try:
        handler = logging.StreamHandler(sys.stderr) if place == STDERR else PrivateFileHandler(place, "a", limit_bytes, OLD_FILES, "ascii")
    except OSError as error:
        raise EnvironmentFault(f"node.audit_log: {place} cannot be written: {error.strerror}") from None
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger.addHandler(handler)


def reopen_audit_log() -> None:
    """Close the file of the audit log, which another program may have renamed. The next line opens it under its name again."""
    for handler in logging.getLogger(AUDIT_LOGGER).handlers:
        if isinstance(handler, PrivateFileHandler):
            handler.reopen()
