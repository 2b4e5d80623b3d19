"""Settings of a client: windows, timeouts, limits."""

from __future__ import annotations

from dataclasses import dataclass

from triplicate.config.setting import setting

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Section ``client``: how a process writes and reads ledgers."""

    wire: str = setting(
        "v2",
        "Protocol version of appends and reads. v2 costs less. Requests that v2 lacks use v3 on a second connection in any case.",
        choices=("v2", "v3"),
        bookkeeper="useV2WireProtocol",
    )
    bookie_tls: str = setting(
        "off",
        "Whether connections to bookies are protected by TLS. required: a bookie that has no TLS, or cannot prove itself by a certificate "
        "of an authority in security.ca_file, is not used. off: they are in clear.",
        choices=("off", "required"),
        bookkeeper="tlsProviderFactoryClass",
    )
    user: str = setting(
        "",
        "The user as which this process logs in at bookies. Empty: it does not log in. A bookie without authentication accepts any user.",
        bookkeeper="clientAuthProviderFactoryClass",
    )
    password_file: str = setting(
        "", "File with the password of `user`; only its owner may read it. It is read again for each connection, so it can be changed."
    )
    mechanism: str = setting(
        "SCRAM-SHA-256",
        "How the user proves the password. SCRAM-SHA-256, and SCRAM-SHA-256-PLUS over TLS, which also binds the login to the TLS "
        "connection: for bookies of Triplicate. DIGEST-MD5: for Apache's bookies with SASL. PLAIN sends the password, over TLS only.",
        choices=("DIGEST-MD5", "SCRAM-SHA-256", "SCRAM-SHA-256-PLUS", "PLAIN"),
    )
    bookie_login: str = setting(
        "offered",
        "Whether bookies must prove that they know the password of `user`. required: a bookie that answers that it has no authentication "
        "is not used, so that none can pass itself off as one. offered: it is used; so clients can have logins before bookies do.",
        choices=("offered", "required"),
    )
    window_entries: int = setting(
        1000, "Maximum number of unacknowledged entries of one ledger. A writer beyond it waits.", unit="entries", low=1, high=1_000_000
    )
    window_bytes: int = setting(
        32 * MIB,
        "Maximum size of the unacknowledged entries of one ledger. A writer beyond it waits.",
        unit="bytes",
        low=KIB,
        high=4096 * MIB,
    )
    channel_window_entries: int = setting(
        20_000,
        "Maximum number of unacknowledged adds at one bookie, over all ledgers. Writers beyond it wait, so that a slow bookie uses "
        "bounded memory.",
        unit="entries",
        low=1,
        high=10_000_000,
    )
    channel_window_bytes: int = setting(
        64 * MIB, "Maximum size of the unacknowledged adds at one bookie, over all ledgers.", unit="bytes", low=KIB, high=4096 * MIB
    )
    add_timeout_s: float = setting(
        5.0,
        "A bookie that does not answer an add within this time has failed and is replaced. The leader of a database or a store gives way "
        "if neither its log nor the metadata answer for this time.",
        unit="seconds",
        low=0.01,
        high=3600,
        bookkeeper="addEntryTimeoutSec",
    )
    read_timeout_s: float = setting(
        5.0,
        "A bookie that does not answer a read within this time has failed, and the next replica is read.",
        unit="seconds",
        low=0.01,
        high=3600,
        bookkeeper="readEntryTimeoutSec",
    )
    hedge_read_s: float = setting(
        0.5,
        "If a bookie does not answer a read within this time, the next replica is read, too, and the first good answer counts. The slow "
        "bookie is in quarantine. 0 disables hedged reads and quarantine: a read waits for the answer or read_timeout_s.",
        unit="seconds",
        low=0,
        high=3600,
        bookkeeper="firstSpeculativeReadTimeout",
    )
    hedge_read_quantile: float = setting(
        0.95,
        "The next replica is already read, too, after the time within which this share of the recent reads was answered, as far as "
        "hedge_read_share allows. 0 leaves only the fixed time hedge_read_s.",
        low=0,
        high=0.999,
    )
    hedge_read_share: float = setting(
        0.05,
        "Maximum share of such additional reads among all reads. 10 more may follow each other.",
        low=0,
        high=1,
    )
    quarantine_first_s: float = setting(
        10.0,
        "A bookie that is slow or fails reads is in quarantine for this time: it is read last, and new ensembles avoid it. Then one "
        "additional read probes it. If that fails, the time is doubled.",
        unit="seconds",
        low=0.001,
        high=86_400,
        bookkeeper="bookieQuarantineTimeSeconds",
    )
    quarantine_maximum_s: float = setting(300.0, "Maximum of that time.", unit="seconds", low=0.001, high=86_400)
    sticky_read_entries: int = setting(
        64,
        "Number of consecutive entries that are read one by one from the same bookie, if every bookie of the ledger holds all of them, "
        "so that its read-ahead serves them. 1 changes the bookie with each entry.",
        unit="entries",
        low=1,
        high=1_000_000,
        bookkeeper="stickyReadSEnabled",
    )
    connect_timeout_s: float = setting(
        5.0,
        "Maximum time to open a connection to a bookie.",
        unit="seconds",
        low=0.01,
        high=600,
        bookkeeper="clientConnectTimeoutMillis",
    )
    address_wait_s: float = setting(
        1.0,
        "Maximum wait for the metadata to return a bookie's address. After it the client connects to the last known address. It also "
        "limits the connection to a bookie that is not registered.",
        unit="seconds",
        low=0.01,
        high=60,
    )
    reconnect_first_s: float = setting(
        0.05,
        "After a failed connection, requests to the bookie fail at once for this time. It is doubled after each failure.",
        unit="seconds",
        low=0.001,
        high=60,
    )
    reconnect_maximum_s: float = setting(2.0, "Maximum of that time.", unit="seconds", low=0.001, high=600)
    delay_ensemble_change: bool = setting(
        False,
        "Keep a failed bookie in the ensemble, and retry it, until an ack quorum is in danger or the bookie is read-only. Otherwise it "
        "is replaced at once. This reduces metadata changes if bookies fail briefly, and leaves more entries with fewer copies.",
        bookkeeper="delayEnsembleChange",
    )
    slow_bookie_limit_s: float = setting(
        10.0,
        "A bookie that holds back a full window of a writer for this time is replaced, if another one can be chosen. 0: never. Has no "
        "effect with delay_ensemble_change.",
        unit="seconds",
        low=0,
        high=3600,
    )
    lost_bookie_limit_s: float = setting(
        30.0,
        "An idle writer replaces a bookie of its ensemble that has not been registered for this time, if another one can be chosen. A "
        "writer that appends does so at the first failed append. 0: never. Has no effect with delay_ensemble_change.",
        unit="seconds",
        low=0,
        high=86_400,
    )
    suspect_s: float = setting(
        30.0,
        "For this time after a failure, a bookie is selected for ensembles only if there are too few others.",
        unit="seconds",
        low=0,
        high=86_400,
    )
    placement_policy: str = setting(
        "uniform",
        "How bookies are chosen for ensembles. uniform: any, on different machines. rack-aware: in at least placement_min_racks racks. "
        "region-aware: also in at least placement_min_regions regions. The numbers apply to the bookies of each entry.",
        choices=("uniform", "rack-aware", "region-aware"),
        bookkeeper="ensemblePlacementPolicy",
    )
    placement_min_racks: int = setting(
        2,
        "Least number of racks for the copies of an entry under the rack-aware and the region-aware policy.",
        unit="racks",
        low=1,
        high=1000,
        bookkeeper="minNumRacksPerWriteQuorum",
    )
    placement_min_regions: int = setting(
        2,
        "Least number of regions for the copies of an entry under the region-aware policy.",
        unit="regions",
        low=1,
        high=1000,
        bookkeeper="reppMinimumRegionsForDurability",
    )
    placement_enforced: bool = setting(
        False,
        "Refuse an ensemble that has too few racks or regions. Otherwise the copies are spread as far as the writable bookies allow.",
        bookkeeper="enforceMinNumRacksPerWriteQuorum",
    )
    placement_min_ack_domains: int = setting(
        1,
        "Least number of fault domains among the bookies that acknowledged an entry before it is acknowledged: machines under the uniform "
        "policy, racks under the rack-aware one, regions under the region-aware one. 1: any ack quorum. A larger number also refuses "
        "ensembles with fewer domains. A write quorum smaller than the number needs one domain per copy.",
        unit="domains",
        low=1,
        high=1000,
        bookkeeper="enforceMinNumFaultDomainsForWrite",
    )
    placement_disk_weight: bool = setting(
        False,
        "Choose bookies in proportion to their free disk, as far as it is known, up to three times the median.",
        bookkeeper="diskWeightBasedPlacementEnabled",
    )
    placement_disk_interval_s: float = setting(
        300.0,
        "Interval at which bookies are asked for their free disk, for placement_disk_weight.",
        unit="seconds",
        low=1,
        high=604_800,
        bookkeeper="getBookieInfoIntervalSeconds",
    )
    network_location: str = setting(
        "",
        "Where this process runs: /region/rack, or the name of its machine as the table of locations, placement_script or the bookies "
        "registered on it know it. Reads then begin with the bookies of the own rack, then of the own region. Empty: no preference.",
    )
    placement_script: str = setting(
        "",
        "Program that prints the network locations of the machines in its arguments, one word for each. Empty: none. Called for the "
        "rack-aware and the region-aware policy, and if network_location is set.",
        bookkeeper="networkTopologyScriptFileName",
    )
    placement_script_timeout_s: float = setting(2.0, "Maximum time for one call of placement_script.", unit="seconds", low=0.01, high=60)
    metadata_timeout_s: float = setting(
        60.0,
        "Maximum time that a creation, an ensemble change, a close or a recovery retries the metadata store.",
        unit="seconds",
        low=0.01,
        high=3600,
    )
    frame_limit_bytes: int = setting(
        5 * MIB,
        "Maximum size of a sent frame. A larger record is refused. The limit of the bookies must not be smaller.",
        unit="bytes",
        low=4 * KIB,
        high=1024 * MIB,
        bookkeeper="nettyMaxFrameSizeBytes",
    )
    read_window_entries: int = setting(
        256,
        "Maximum number of entries that a range read requests at a time; for batch reads, in each request.",
        unit="entries",
        low=1,
        high=100_000,
    )
    read_window_bytes: int = setting(
        16 * MIB,
        "Maximum size of the outstanding reads of one range read or recovery, estimated from the entries so far.",
        unit="bytes",
        low=KIB,
        high=4096 * MIB,
    )
    recovery_window_entries: int = setting(
        1000,
        "Maximum number of entries beyond the confirmed prefix that recovery reads and copies at a time, as far as they fit into "
        "read_window_bytes.",
        unit="entries",
        low=1,
        high=10_000,
        bookkeeper="recoveryReadBatchSize",
    )
    tail_wait_minimum_s: float = setting(
        0.001,
        "First pause of a polling tail after it has received entries. It is doubled after each poll without entries.",
        unit="seconds",
        low=0.0001,
        high=60,
    )
    tail_wait_maximum_s: float = setting(0.05, "Maximum pause of a polling tail.", unit="seconds", low=0.0001, high=60)
    batch_read: bool = setting(
        True,
        "Read many entries in one request if every bookie of the ledger holds all of them, over v2. Bookies before BookKeeper 4.17 do "
        "not support it; a reader that meets one continues with single reads.",
        bookkeeper="batchReadEnabled",
    )
    long_poll: bool = setting(
        True,
        "A tail leaves a request at a bookie, which answers when there are new entries. If this is off, or a bookie does not support "
        "it, the tail polls.",
    )
    long_poll_wait_s: float = setting(
        3.0,
        "Maximum time that a bookie holds such a request. If three fifths of read_timeout_s are less, these apply.",
        unit="seconds",
        low=0.001,
        high=3600,
    )
    explicit_lac_interval_s: float = setting(
        0.0,
        "Interval at which an idle writer sends its last-add-confirmed to the bookies. 0 leaves it to the next append or the close.",
        unit="seconds",
        low=0,
        high=3600,
        bookkeeper="explicitLacInterval",
    )
    trash_period_s: float = setting(
        86_400.0,
        "A deleted ledger can be undeleted for nine tenths of this time. 0 disables the trash. Must not exceed the `trash_period_s` of "
        "the bookies, which keep the entries.",
        unit="seconds",
        low=0,
        high=86_400 * 365,
    )
