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
        "Version of the protocol that carries appends and reads; v2 is leaner. What v2 lacks goes over v3 on a second connection anyhow.",
        choices=("v2", "v3"),
        bookkeeper="useV2WireProtocol",
    )
    window_entries: int = setting(
        1000, "Entries of one ledger that may be unacknowledged; a writer beyond it waits.", unit="entries", low=1, high=1_000_000
    )
    window_bytes: int = setting(
        32 * MIB, "Bytes of one ledger that may be unacknowledged; a writer beyond it waits.", unit="bytes", low=KIB, high=4096 * MIB
    )
    channel_window_entries: int = setting(
        20_000,
        "Adds that one bookie may owe an answer, over all ledgers; writers beyond it wait, so that a slow bookie costs a bounded memory.",
        unit="entries",
        low=1,
        high=10_000_000,
    )
    channel_window_bytes: int = setting(
        64 * MIB, "Bytes of adds that one bookie may owe an answer, over all ledgers.", unit="bytes", low=KIB, high=4096 * MIB
    )
    add_timeout_s: float = setting(
        5.0,
        "A bookie that leaves an add unanswered this long has failed and is replaced; one that is merely slower has not.",
        unit="seconds",
        low=0.01,
        high=3600,
        bookkeeper="addEntryTimeoutSec",
    )
    read_timeout_s: float = setting(
        5.0,
        "A bookie that leaves a read unanswered this long is passed over for the next replica.",
        unit="seconds",
        low=0.01,
        high=3600,
        bookkeeper="readEntryTimeoutSec",
    )
    hedge_read_s: float = setting(
        0.5,
        "A bookie that leaves a read unanswered this long is slow: the next replica is asked as well, the first good answer counts, and "
        "the slow one is asked last for a while. 0 waits for the answer or read_timeout_s.",
        unit="seconds",
        low=0,
        high=3600,
        bookkeeper="firstSpeculativeReadTimeout",
    )
    connect_timeout_s: float = setting(
        5.0,
        "How long opening a connection to a bookie may take.",
        unit="seconds",
        low=0.01,
        high=600,
        bookkeeper="clientConnectTimeoutMillis",
    )
    address_wait_s: float = setting(
        1.0,
        "How long a connection waits for the metadata to tell where a bookie listens before it goes to the address last known; and for a "
        "connection to a bookie that is not registered.",
        unit="seconds",
        low=0.01,
        high=60,
    )
    reconnect_first_s: float = setting(
        0.05,
        "After a failed connection, requests to that bookie fail at once for this long; doubled each time.",
        unit="seconds",
        low=0.001,
        high=60,
    )
    reconnect_maximum_s: float = setting(2.0, "The longest such pause.", unit="seconds", low=0.001, high=600)
    delay_ensemble_change: bool = setting(
        False,
        "Keep a failed bookie in the ensemble, and try it again, until an ack quorum is in danger or the bookie is read-only; "
        "else it is replaced at once. Spares the metadata where bookies fail shortly, and leaves more entries with fewer copies.",
        bookkeeper="delayEnsembleChange",
    )
    suspect_s: float = setting(
        30.0,
        "A bookie that failed is chosen for ensembles only where there are too few others, for this long.",
        unit="seconds",
        low=0,
        high=86_400,
    )
    metadata_timeout_s: float = setting(
        60.0,
        "How long a creation, a change of ensemble, a close or a recovery tries to reach the metadata before it gives up.",
        unit="seconds",
        low=0.01,
        high=3600,
    )
    frame_limit_bytes: int = setting(
        5 * MIB,
        "Largest frame that is sent; a record that does not fit is refused. The bookies' limit must not be smaller.",
        unit="bytes",
        low=4 * KIB,
        high=1024 * MIB,
        bookkeeper="nettyMaxFrameSizeBytes",
    )
    read_window_entries: int = setting(
        256, "Entries that one reading of a range asks for at a time; of batches, in each of them.", unit="entries", low=1, high=100_000
    )
    read_window_bytes: int = setting(
        16 * MIB,
        "Bytes that one reading of a range, or one recovery, has on the way, reckoned by the entries so far.",
        unit="bytes",
        low=KIB,
        high=4096 * MIB,
    )
    recovery_window_entries: int = setting(
        1000,
        "Entries beyond the confirmed prefix that recovery reads and copies at a time, or fewer: as many as fit into read_window_bytes.",
        unit="entries",
        low=1,
        high=10_000,
        bookkeeper="recoveryReadBatchSize",
    )
    tail_wait_minimum_s: float = setting(
        0.001,
        "A tail asks again this long after it last learned something; doubled each time in vain.",
        unit="seconds",
        low=0.0001,
        high=60,
    )
    tail_wait_maximum_s: float = setting(0.05, "The longest pause of a tail that learns nothing.", unit="seconds", low=0.0001, high=60)
    batch_read: bool = setting(
        True,
        "Ask for many entries in one request where every bookie of the ledger holds all of them, over v2. "
        "Bookies before BookKeeper 4.17 cannot do it; a reader that meets one goes on with single reads.",
        bookkeeper="batchReadEnabled",
    )
    long_poll: bool = setting(
        True, "A tail leaves a request with a bookie, which answers when there is news; else, or where a bookie cannot, the tail polls."
    )
    long_poll_wait_s: float = setting(
        3.0,
        "How long a bookie may keep such a request without news; three fifths of read_timeout_s where that is less.",
        unit="seconds",
        low=0.001,
        high=3600,
    )
    explicit_lac_interval_s: float = setting(
        0.0,
        "A writer with nothing to append tells the bookies its last-add-confirmed this often; 0 leaves it to the next append or the close.",
        unit="seconds",
        low=0,
        high=3600,
        bookkeeper="explicitLacInterval",
    )
    trash_period_s: float = setting(
        86_400.0,
        "A deleted ledger can be brought back for nine tenths of this time; 0: never. No longer than the bookies keep its entries "
        "(their `trash_period_s`).",
        unit="seconds",
        low=0,
        high=86_400 * 365,
    )
