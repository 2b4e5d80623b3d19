"""One database of real nodes for the tests of a module; it takes longer to start than each of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.spark.table_stand import TableStand, table_stand


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TableStand]:
    with pytest.MonkeyPatch.context() as monkeypatch, table_stand(monkeypatch, tmp_path_factory.mktemp("stand")) as made:
        yield made
