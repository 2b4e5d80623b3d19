"""Progress of queries, as PySpark gives it."""

from __future__ import annotations

import json
from typing import Any

from triplicate.spark.core.offsets import LogPosition, LogPositions, encode_positions


def offset(**logs: tuple[int, str | None]) -> str:
    return json.dumps(encode_positions(LogPositions({log: LogPosition(*position) for log, position in logs.items()})))


def progress(*sources: tuple[str | None, str | None], **fields: Any) -> dict[str, Any]:
    """As PySpark gives it; each source has its end and its latest offset."""
    return {
        "id": "6a19",
        "runId": "b2a5",
        "name": None,
        "batchId": 4,
        "batchDuration": 679,
        "processedRowsPerSecond": 7.4,
        "sources": [{"description": "PythonMicroBatchStream@4e", "endOffset": end, "latestOffset": latest} for end, latest in sources],
        **fields,
    }
