"""Settings of security that every process has: its TLS identity, and the authority that it trusts."""

from __future__ import annotations

import dataclasses

from triplicate.config.setting import setting


@dataclasses.dataclass(frozen=True, slots=True)
class SecuritySettings:
    """Section ``security``: what is the same at every door of a process."""

    required: bool = setting(
        False,
        "Whether this process refuses to start unless everything is protected: each door that it opens and each connection that it makes. "
        "The refusal names all settings that are missing.",
    )
    ca_file: str = setting(
        "",
        "PEM file with the certificates of the authorities that this process trusts, both as a client and as a server. Empty: no TLS.",
        bookkeeper="tlsTrustStore",
    )
    certificate_file: str = setting(
        "",
        "PEM file with the certificate of this process and the intermediate ones behind it. The process shows it as a server, and as "
        "a client where a server requests one.",
        bookkeeper="tlsCertificatePath",
    )
    key_file: str = setting(
        "", "PEM file with the private key of `certificate_file`; only its owner may read it.", bookkeeper="tlsKeyStore"
    )
    verify_host: bool = setting(
        True,
        "Whether a client checks that a server's certificate names the host that it connects to. Without it any holder of a "
        "certificate of the authority can pose as any server.",
        bookkeeper="hostnameVerificationEnabled",
    )
    reload_interval_s: float = setting(
        60.0,
        "Interval at which the files are checked for a renewed certificate. Connections that are open keep theirs.",
        unit="seconds",
        low=0.1,
        high=86400,
        bookkeeper="tlsCertFilesRefreshDurationSeconds",
    )
