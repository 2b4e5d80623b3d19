"""The times in request ids. Every copy must read the same one, of any release."""

from __future__ import annotations

import uuid

import pytest

from triplicate.sql.core.request_ids import fingerprint, issued_ms


@pytest.mark.parametrize(
    ("request_id", "found"),
    [
        ("017f22e2-79b0-7cc3-98c4-dc0c0c07398f", 1645557742000),  # The example of RFC 9562, appendix A.6.
        ("017F22E2-79B0-7CC3-98C4-DC0C0C07398F", 1645557742000),
        ("1645557742000:order 17", 1645557742000),
        ("1645557742000:two\nlines", 1645557742000),
        ("0000000000000:x", 0),
    ],
)
def test_the_time_of_an_id(request_id: str, found: int) -> None:
    assert issued_ms(request_id) == found


@pytest.mark.parametrize(
    "request_id",
    [
        "",
        "order 17",
        "1645557742000",
        "1645557742000:",
        "164555774200:12 digits",
        "16455577420000:14 digits",
        " 1645557742000:x",
        str(uuid.UUID(int=0x017F22E279B04CC398C4DC0C0C07398F)),  # Version 4.
        "017f22e2-79b0-7cc3-c8c4-dc0c0c07398f",  # Of another variant.
        "{017f22e2-79b0-7cc3-98c4-dc0c0c07398f}",
    ],
)
def test_other_ids_have_no_time(request_id: str) -> None:
    assert issued_ms(request_id) is None


def test_a_fingerprint_is_that_of_earlier_releases() -> None:
    assert fingerprint("order 17") == 8086956819282891066
    assert -(2**63) <= fingerprint("") < 2**63
    assert len({fingerprint(f"{number}") for number in range(1000)}) == 1000
