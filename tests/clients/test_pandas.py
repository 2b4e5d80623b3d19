"""pandas over SQLAlchemy's default connection: frames written as tables and read back."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
import pytest
import sqlalchemy as sa

from tests.clients.foreign import leader_port
from tests.clients.stand import Db


@pytest.fixture
def engine(shared: Db) -> Iterator[sa.Engine]:
    made = sa.create_engine(f"postgresql+psycopg://tester@127.0.0.1:{leader_port(shared)}/{shared.name}")
    yield made
    made.dispose()


@pytest.fixture
def frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "a": [1, 2, 3],
            "b": ["x", "y", None],
            "c": [1.5, None, 2.5],
            "d": pd.to_datetime(["2026-01-01", "2026-01-02", "2026-01-03"]),
            "e": [True, False, True],
        }
    )


def test_a_frame_is_written_appended_and_replaced(engine: sa.Engine, frame: pd.DataFrame, table: str) -> None:
    frame.to_sql(table, engine, index=False)
    with pytest.raises(ValueError, match="already exists"):
        frame.to_sql(table, engine, index=False)
    frame.to_sql(table, engine, index=False, if_exists="append", method="multi")
    assert pd.read_sql(f"SELECT count(*) AS n FROM {table}", engine)["n"].tolist() == [6]
    frame.to_sql(table, engine, index=False, if_exists="replace")
    found = pd.read_sql(sa.text(f"SELECT * FROM {table} WHERE a >= :least ORDER BY a"), engine, params={"least": 2})
    assert found["a"].tolist() == [2, 3]
    assert found["b"].tolist() == ["y", None]
    assert found["d"].tolist() == frame["d"].tolist()[1:]
    assert found["e"].tolist() == [False, True]


def test_a_table_is_read_by_its_name(engine: sa.Engine, frame: pd.DataFrame, table: str) -> None:
    frame.to_sql(table, engine)
    found = pd.read_sql_table(table, engine, index_col="index")
    assert found["c"].tolist()[0] == 1.5
    assert found.dtypes.astype(str).to_dict() == {"a": "int64", "b": "object", "c": "float64", "d": "datetime64[ns]", "e": "bool"}
