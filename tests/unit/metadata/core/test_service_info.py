"""Service information of bookies, and cookies. Source: BookKeeper `BookieServiceInfoUtils`, `BookieId`, `Cookie`."""

from __future__ import annotations

import pytest

from triplicate.errors import ArgumentError, BookieUnavailable, FormatError
from triplicate.metadata import (
    BookieServiceInfo,
    Cookie,
    Endpoint,
    bookie_service,
    check_bookie_id,
    decode_cookie,
    decode_service_info,
    encode_cookie,
    encode_service_info,
)


def test_service_info_has_bookkeepers_bytes() -> None:
    info = bookie_service("bk1", 3181)
    data = bytes.fromhex("321c0a06626f6f6b696510ed181a03626b31220a626f6f6b69652d727063")
    assert encode_service_info(info) == data
    assert decode_service_info("bookie-1", data) == info
    assert info.address == ("bk1", 3181)


def test_service_info_with_everything_is_read_back() -> None:
    info = BookieServiceInfo(
        (Endpoint("httpserver", 8080, "h", "http"), Endpoint("bookie", 3181, "h", auth=("a",), extensions=("tls",))), {"b": "2", "a": "1"}
    )
    assert decode_service_info("x", encode_service_info(info)) == info
    assert info.address == ("h", 3181)
    assert bookie_service("h", 1, http_port=2).endpoints[1] == Endpoint("httpserver", 2, "h", "http")


def test_an_empty_registration_means_the_id_is_the_address() -> None:
    assert decode_service_info("10.0.0.1:3181", b"").address == ("10.0.0.1", 3181)
    for bookie_id in ("bookie-1", "host:", ":3181", "host:99999", "host:x"):
        with pytest.raises(FormatError, match="no address"):
            decode_service_info(bookie_id, b"")


def test_a_registration_that_cannot_be_used_says_so() -> None:
    with pytest.raises(FormatError, match="b1"):
        decode_service_info("b1", b"\xff\xff\xff")
    with pytest.raises(BookieUnavailable, match="bookie-rpc"):
        _ = BookieServiceInfo((Endpoint("httpserver", 80, "h", "http"),)).address
    with pytest.raises(ArgumentError):
        encode_service_info(bookie_service("h", 70000))


@pytest.mark.parametrize("bookie_id", ["bookie-1", "10.0.0.1:3181", "a_b.c", "x;<=>?@[\\]^", "READ"])
def test_a_bookie_id_that_apache_accepts_is_accepted(bookie_id: str) -> None:
    assert check_bookie_id(bookie_id) == bookie_id


@pytest.mark.parametrize("bookie_id", ["", "a/b", "a b", "a~", "readonly", "ReadOnly", ".", "..", "é", "a\n"])
def test_a_bookie_id_that_would_break_apache_is_refused(bookie_id: str) -> None:
    with pytest.raises(ArgumentError):
        check_bookie_id(bookie_id)


def test_a_cookie_has_bookkeepers_text() -> None:
    cookie = Cookie("bk1:3181", "/bk/journal", ("/bk/ledgers",), "6ba7b810-9dad-11d1-80b4-00c04fd430c8")
    text = (
        "4\n"
        'bookieHost: "bk1:3181"\n'
        'journalDir: "/bk/journal"\n'
        'ledgerDirs: "1\\t/bk/ledgers"\n'
        'instanceId: "6ba7b810-9dad-11d1-80b4-00c04fd430c8"\n'
    )
    assert encode_cookie(cookie) == text.encode()
    assert decode_cookie(text.encode()) == cookie


def test_a_cookie_with_index_directories_is_layout_5_and_read_back() -> None:
    cookie = Cookie("b", "/j1,/j2", ("/l1", '/l "2"', "/lé"), "id", ("/i1", "/i2"))
    data = encode_cookie(cookie)
    assert data.startswith(b"5\n")
    assert data.isascii()
    assert decode_cookie(data) == cookie


def test_cookies_of_other_releases_are_read() -> None:
    text = b'5\nbookieHost: "b"\njournalDir: "/j"\nledgerDirs: "2\\t/a\\t/b\\t"\ninstanceId: "i"\nfuture: 7\n'
    assert decode_cookie(text) == Cookie("b", "/j", ("/a", "/b"), "i")
    assert decode_cookie(b"3\nhost:3181\n/j\n1\t/a\n") == Cookie("host:3181", "/j", ("/a",), "")


NO_COOKIES = [
    b"",
    b"x",
    b"2\nold",
    b"4\n",
    b'4\nbookieHost: "b"',
    b"3\nhost",
    b"\xff",
    b'4\nbookieHost: "b"\njournalDir: "j"\nledgerDirs: "3\\ta"\n',
]


@pytest.mark.parametrize("data", NO_COOKIES)
def test_what_is_no_cookie_is_refused(data: bytes) -> None:
    with pytest.raises(FormatError):
        decode_cookie(data)
