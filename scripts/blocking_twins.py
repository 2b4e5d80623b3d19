"""Which async classes have a blocking twin, and how it differs: the tables of `scripts/blocking.py`."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Twin:
    """The blocking twin of one async class.

    Args:
        source: ``room:Class``.
        name: the blocking class.
        attribute: the attribute that holds the async object, without its underscore.
        docs: the docstring of the blocking class.
        base: the blocking class that it extends, whose methods it inherits.
        fields: attributes of the async object that are copied in ``__init__``.
        properties: names of the properties that it has too.
        on_loop: names of plain methods that run on the loop.
        left_out: maps a public coroutine method without a twin to the reason.
        bodies: maps a method to the text of its own body, which may use the parameters.
        handle: whether the object is a context manager.
        closes: the async method that ``close`` calls, if its name is not ``close``.
        loop: the attribute that holds the `BackgroundLoop`.
        iterator: the type of the items, if the object is an iterator over its ``next_entry`` or ``next_record``; over batches of entries
            ``batched``, over batches of records ``records``.
        extra: lines of further methods, as they are to be written.
    """

    source: str
    name: str
    attribute: str
    docs: str
    base: str = ""
    fields: Sequence[str] = ()
    properties: Sequence[str] = ()
    on_loop: Sequence[str] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    bodies: Mapping[str, str] = field(default_factory=dict)
    handle: bool = True
    closes: str = ""
    loop: str = "_loop"
    iterator: str = ""
    extra: Sequence[str] = ()

    @property
    def original(self) -> type:
        """The async class."""
        room, _, name = self.source.partition(":")
        original: type = getattr(importlib.import_module(f"triplicate.{room}"), name)
        return original


@dataclass(frozen=True)
class Functions:
    """A blocking class for the async functions of a package whose first parameter is a client.

    Args:
        room: the package. methods: maps the name of a method to that of its function.
        left_out: names of parameters that the methods do not have.
    """

    room: str
    name: str
    docs: str
    methods: Mapping[str, str]
    left_out: Sequence[str] = ()


@dataclass(frozen=True)
class Facade:
    """One generated module."""

    module: str
    docs: str
    twins: Sequence[Twin] = ()
    functions: Sequence[Functions] = ()
    imports: Sequence[str] = ()


INTERNAL = "for the client's own modules"

FACADES = (
    Facade(
        "ledger_facade",
        "Ledgers without `await`.",
        (
            Twin(
                "client:WriteHandle",
                "BlockingHandle",
                "handle",
                "The methods that both blocking writers have, which do not depend on how entries get their ids. See `WriteHandle`.",
                fields=("ledger_id",),
                properties=("metadata", "last_add_confirmed", "last_add_pushed", "length", "ensemble_changes", "missing_bookies"),
            ),
            Twin("client:LedgerWriter", "BlockingWriter", "writer", "`LedgerWriter` without `await`.", base="BlockingHandle"),
            Twin("client:AdvLedgerWriter", "BlockingAdvWriter", "writer", "`AdvLedgerWriter` without `await`.", base="BlockingHandle"),
            Twin(
                "client:LedgerReader",
                "BlockingReader",
                "reader",
                "`LedgerReader` without `await`.",
                fields=("ledger_id",),
                properties=("metadata", "is_closed", "last_add_confirmed", "length"),
                on_loop=("tail",),
                left_out=dict.fromkeys(("refresh_last_confirmed", "read_confirmed", "finish_confirmed", "refresh_metadata"), INTERNAL),
                closes="aclose",
            ),
            Twin(
                "client:Client",
                "ClientMethods",
                "client",
                "The methods of `Client` without `await`; see `BlockingClient`.",
                left_out={"aclose": "the connection closes the client"},
                handle=False,
                loop="loop",
            ),
        ),
        imports=("from triplicate.blocking.iterators import BlockingTail",),
    ),
    Facade(
        "record_facade",
        "Records, consumers and producers of logs without `await`.",
        (
            Twin(
                "log:LogProducer",
                "BlockingLogProducer",
                "producer",
                "`LogProducer` without `await`.",
                fields=("name", "id", "epoch"),
                properties=("last_sequence",),
            ),
            Twin(
                "log:LogRecords",
                "BlockingLogRecords",
                "records",
                "`LogRecords` without `await`. Records pass between the threads in batches. Use ``with`` if a loop may be left early.",
                left_out={"open": "reading opens it"},
                bodies={
                    "next_record": "return self._batches.next_record(timeout_s)",
                    "next_records": "return self._batches.next_records(limit, timeout_s)",
                },
                closes="aclose",
                iterator="records",
            ),
            Twin(
                "log:BackwardReader",
                "BlockingBackwardReader",
                "reader",
                "`BackwardReader` without `await`. Records pass between the threads in batches.",
                fields=("lost",),
                bodies={
                    "next_record": "return self._batches.next_record()",
                    "next_records": "return self._batches.next_records(limit)",
                },
                closes="aclose",
                iterator="records",
            ),
            Twin(
                "log:LogConsumer",
                "BlockingLogConsumer",
                "consumer",
                "`LogConsumer` without `await`. Its iterator waits for the next record at the end of the log.",
                fields=("owner", "missed"),
                properties=("position", "saved_position"),
                iterator="LogRecord",
            ),
        ),
        imports=("from triplicate.blocking.iterators import RecordBatches",),
    ),
    Facade(
        "log_writing_facade",
        "Writers of logs without `await`.",
        (
            Twin(
                "log:LogWriter",
                "BlockingLogWriter",
                "writer",
                "`LogWriter` without `await`.",
                properties=("next_offset", "acknowledged_offset", "ledger_id", "is_reduced", "failure"),
                left_out={
                    "append_numbered": "`LogProducer.append` calls it",
                    "append_listed": "only logs that belong to something have such batches",
                },
            ),
            Twin(
                "log:StagingWriter",
                "BlockingStagingWriter",
                "writer",
                "`StagingWriter` without `await`.",
                properties=("records",),
            ),
        ),
        imports=("from triplicate.blocking.record_facade import BlockingLogProducer",),
    ),
    Facade(
        "log_facade",
        "Logs without `await`.",
        (
            Twin(
                "log:LogReader",
                "BlockingLogReader",
                "reader",
                "`LogReader` without `await`. Its iterator waits for the next entry at the end of the log.",
                properties=("position",),
                closes="aclose",
                iterator="LogEntry",
            ),
            Twin(
                "log:RangeReader",
                "BlockingRangeReader",
                "reader",
                "`RangeReader` without `await`. Its iterator passes entries between the threads in batches.",
                bodies={
                    "next_entry": "return next(self, None)",
                    "seek": "self._batches.clear()\nself._loop.call(self._reader.seek(first_offset, end_offset))",
                },
                closes="aclose",
                iterator="batched",
            ),
            Twin(
                "log:Logs",
                "BlockingLogs",
                "logs",
                "`Logs` without `await`. Create it with `BlockingClient.logs`.",
                on_loop=("acting_for", "read_range", "records", "backwards"),
                handle=False,
                extra=(
                    "def __getitem__(self, name: str) -> BlockingLog:",
                    '    """One log by name, for programs that read and write records. Nothing is read yet."""',
                    "    return BlockingLog(self._loop, self._loop.run(lambda: self._logs[name]))",
                    "",
                ),
            ),
            Twin(
                "log:Log",
                "BlockingLog",
                "log",
                "`Log` without `await`. Its iterator delivers all records from the first on, and then new ones.",
                fields=("name",),
                on_loop=("records", "backwards"),
                handle=False,
                extra=("def __iter__(self) -> BlockingLogRecords:", "    return self.records()", ""),
            ),
        ),
        imports=(
            "from triplicate.blocking.iterators import EntryBatches",
            "from triplicate.blocking.log_writing_facade import BlockingLogWriter, BlockingStagingWriter",
            "from triplicate.blocking.record_facade import BlockingBackwardReader, BlockingLogConsumer, BlockingLogProducer",
            "from triplicate.blocking.record_facade import BlockingLogRecords",
        ),
    ),
    Facade(
        "database_facade",
        "Databases without `await`.",
        functions=(
            Functions(
                "sql",
                "BlockingDatabases",
                "The databases of a cluster, without `await`. Create it with `BlockingClient.databases`.",
                {
                    "create": "create_database",
                    "info": "database_info",
                    "names": "database_names",
                    "rename": "rename_database",
                    "drop": "drop_database",
                    "dropped": "dropped_databases",
                    "undelete": "undelete_database",
                },
                left_out=("logs",),
            ),
        ),
    ),
    Facade(
        "embedded_facade",
        "Embedded databases without `await`.",
        (
            Twin(
                "embedded:OpenTransaction",
                "BlockingTransaction",
                "transaction",
                "`OpenTransaction` without `await`. Create it with `BlockingDatabase.transaction`.",
                handle=False,
            ),
            Twin(
                "embedded:EmbeddedDatabase",
                "DatabaseMethods",
                "database",
                "The methods of `EmbeddedDatabase` without `await`; see `BlockingDatabase`.",
                fields=("name",),
                properties=("is_leader", "position", "address"),
                left_out={
                    "transaction": "a context manager, which `OpenDatabase` has",
                    "new_session": "for drivers",
                    "aclose": "`BlockingDatabase` closes it",
                },
                handle=False,
                loop="loop",
            ),
        ),
    ),
    Facade(
        "store_facade",
        "Key-value stores without `await`.",
        (
            Twin(
                "embedded:EmbeddedStore",
                "StoreMethods",
                "store",
                "The methods of `EmbeddedStore` without `await`; see `BlockingStore`.",
                fields=("name",),
                properties=("node_id", "is_leader", "leader", "position", "limits", "address"),
                left_out={"aclose": "`BlockingStore` closes it"},
                bodies={"items": "return items_of_pages(lambda rest: self.scan(rest, page_keys, level, with_values=with_values), keys)"},
                handle=False,
                loop="loop",
            ),
        ),
        (
            Functions(
                "kv",
                "BlockingStores",
                "The key-value stores of a cluster, without `await`. Create it with `BlockingClient.stores`.",
                {"create": "create_store", "info": "store_info", "names": "store_names", "drop": "drop_store"},
                left_out=("logs", "key_id"),
            ),
        ),
        imports=("from triplicate.blocking.iterators import BlockingKeyWatch, items_of_pages",),
    ),
)

TWINS = tuple(twin for facade in FACADES for twin in facade.twins)
RETURNS = {"Tail": "BlockingTail", "KeyWatch": "BlockingKeyWatch", **{twin.source.partition(":")[2]: twin.name for twin in TWINS}}
"""Maps an async class in a return annotation to its twin."""
