"""A log whose machines are short creates a segment with fewer copies than fault domains that its acknowledgements need."""

from collections.abc import Callable

from triplicate.config.log_settings import LogSettings
from triplicate.log.core.head import Quorums
from triplicate.log.core.quorums import quorums_for
from triplicate.log.store import segments

TESTS = ["tests/unit/log/store/test_segments.py::test_a_segment_keeps_the_domains_of_its_acknowledgements"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def in_any_domains(log: LogSettings, writable: int, min_ack_domains: int) -> Quorums | None:
        return quorums_for(log, writable)

    patch(segments, "quorums_for", in_any_domains)
