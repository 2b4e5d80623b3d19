"""The reasons for which TLS failed, in words: one line, with the setting or the cure where there is one.

Source: OpenSSL's `X509_verify_cert_error_string`; RFC 8446, 6.2; the documentation of Python's module `ssl`.
"""

from __future__ import annotations

import ssl

_OF_VERIFICATION = {
    9: "its certificate is not valid yet, or a clock is off",
    10: "its certificate has expired, or a clock is off",
    18: "its certificate signs itself and is not in security.ca_file",
    19: "its certificate is of an authority that is not in security.ca_file",
    20: "its certificate is of an authority that is not in security.ca_file",
    21: "its certificate is of an authority that is not in security.ca_file",
    62: "its certificate does not name this host",
    64: "its certificate does not name this address",
}
"""OpenSSL's code of a failed verification → what it means."""

_BY_REASON = (
    ("CERTIFICATE_REQUIRED", "the peer requires a certificate, see security.certificate_file"),
    ("UNKNOWN_CA", "the peer does not trust the authority of this certificate"),
    ("CERTIFICATE_EXPIRED", "the peer says that this certificate has expired, or a clock is off"),
    ("BAD_CERTIFICATE", "the peer refused this certificate, or that there is none"),
    ("CERTIFICATE_UNKNOWN", "the peer refused this certificate"),
    ("WRONG_VERSION_NUMBER", "the peer does not speak TLS here"),
)
"""Part of OpenSSL's name of an error → what it means. Most are alerts of the peer's."""


def reason_of_tls_failure(error: OSError) -> str:
    """One line for an error of a handshake, or of a connection that is protected. It holds nothing secret."""
    if isinstance(error, ssl.SSLCertVerificationError):
        message = str(error.verify_message).rstrip(".")
        meaning = _OF_VERIFICATION.get(error.verify_code)
        return f"{meaning} ({message})" if meaning else f"its certificate cannot be verified ({message})"
    if isinstance(error, ssl.SSLError) and error.reason:
        plain = error.reason.replace("_", " ").lower()
        return next((f"{meaning} ({plain})" for part, meaning in _BY_REASON if part in error.reason), plain)
    return str(error) or type(error).__name__
