"""SQLAlchemy with its default connections, over psycopg, psycopg2 and asyncpg: its probes, create_all, the ORM, and its inspector."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, TypeVar

import pytest
import sqlalchemy as sa
from sqlalchemy import orm
from sqlalchemy.ext.asyncio import create_async_engine

from tests.clients.foreign import leader_port
from tests.clients.stand import Db

Result = TypeVar("Result")
DRIVERS = ["psycopg", "psycopg2", "asyncpg"]


class Base(orm.DeclarativeBase):
    pass


class User(Base):
    __tablename__ = "sa_user"

    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    name: orm.Mapped[str] = orm.mapped_column(sa.String(50), unique=True)
    age: orm.Mapped[int | None]
    born: orm.Mapped[dt.datetime | None] = orm.mapped_column(sa.DateTime(timezone=True), server_default=sa.func.now())
    price: orm.Mapped[Decimal | None] = orm.mapped_column(sa.Numeric(10, 2))
    active: orm.Mapped[bool] = orm.mapped_column(default=True)
    items: orm.Mapped[list[Item]] = orm.relationship(back_populates="user", cascade="all, delete-orphan")


class Item(Base):
    __tablename__ = "sa_item"

    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    user_id: orm.Mapped[int] = orm.mapped_column(sa.ForeignKey("sa_user.id"), index=True)
    title: orm.Mapped[str]
    user: orm.Mapped[User] = orm.relationship(back_populates="items")


class Engine:
    """One engine with default options."""

    def __init__(self, database: Db, driver: str) -> None:
        self._url = f"postgresql+{driver}://tester@127.0.0.1:{leader_port(database)}/{database.name}"
        self._is_async = driver == "asyncpg"

    def run(self, body: Callable[[sa.Connection], Result]) -> Result:
        """Run in one transaction."""
        if self._is_async:
            return asyncio.run(self._run_async(body))
        engine = sa.create_engine(self._url)
        try:
            with engine.begin() as connection:
                return body(connection)
        finally:
            engine.dispose()

    async def _run_async(self, body: Callable[[sa.Connection], Result]) -> Result:
        engine = create_async_engine(self._url)
        try:
            async with engine.begin() as connection:
                return await connection.run_sync(body)
        finally:
            await engine.dispose()


@pytest.fixture(params=DRIVERS)
def engine(shared: Db, request: pytest.FixtureRequest) -> Engine:
    return Engine(shared, request.param)


@pytest.fixture
def tables(engine: Engine) -> Iterator[Engine]:
    """An engine with the model's tables, made by create_all and dropped by drop_all."""
    engine.run(Base.metadata.create_all)
    yield engine
    engine.run(Base.metadata.drop_all)
    assert engine.run(lambda connection: sa.inspect(connection).has_table("sa_user")) is False


def add_users(connection: sa.Connection) -> list[int]:
    with orm.Session(connection) as session:
        users = [
            User(name=f"u{number}", age=number, price=Decimal("1.50"), items=[Item(title="first"), Item(title="second")])
            for number in range(5)
        ]
        session.add_all(users)
        session.commit()
        return [user.id for user in users]


def test_the_default_connection_is_made(engine: Engine) -> None:
    assert engine.run(lambda connection: connection.scalar(sa.text("SELECT 1"))) == 1
    assert engine.run(lambda connection: connection.dialect.default_schema_name) == "public"


def test_create_all_makes_only_missing_tables(tables: Engine) -> None:
    tables.run(add_users)
    tables.run(Base.metadata.create_all)
    assert tables.run(lambda connection: connection.scalar(sa.select(sa.func.count()).select_from(User))) == 5


def test_rows_get_their_keys_and_defaults(tables: Engine) -> None:
    assert tables.run(add_users) == [1, 2, 3, 4, 5]

    def look(connection: sa.Connection) -> list[Any]:
        with orm.Session(connection) as session:
            user = session.scalars(sa.select(User).where(User.name == "u3")).one()
            assert user.born is not None
            apart = abs(dt.datetime.now(dt.UTC) - user.born)
            return [user.id, user.age, user.price, user.active, apart < dt.timedelta(minutes=1), [item.title for item in user.items]]

    assert tables.run(look) == [4, 3, Decimal("1.50"), True, True, ["first", "second"]]


def test_queries_of_the_orm(tables: Engine) -> None:
    tables.run(add_users)

    def look(connection: sa.Connection) -> list[Any]:
        with orm.Session(connection) as session:
            some = session.scalars(sa.select(User.name).where(User.name.in_(["u1", "u2"])).order_by(User.id)).all()
            like = session.scalar(sa.select(sa.func.count()).select_from(User).where(User.name.ilike("U%")))
            joined = session.execute(
                sa.select(User.name, sa.func.count(Item.id)).join(Item).group_by(User.name).order_by(User.name)
            ).first()
            exists = session.scalar(sa.select(sa.exists().where(User.age == 3)))
            return [some, like, joined, exists]

    assert tables.run(look) == [["u1", "u2"], 5, ("u0", 2), True]


def test_changes_of_the_orm(tables: Engine) -> None:
    tables.run(add_users)

    def change(connection: sa.Connection) -> None:
        with orm.Session(connection) as session:
            first = session.get_one(User, 1)
            first.name, first.age = "changed", None
            session.execute(sa.update(User).where(User.age >= 3).values(age=User.age + 10))
            session.delete(session.get_one(User, 2))
            session.commit()

    tables.run(change)
    found = tables.run(lambda connection: connection.execute(sa.select(User.id, User.name, User.age).order_by(User.id)).all())
    assert found == [(1, "changed", None), (3, "u2", 2), (4, "u3", 13), (5, "u4", 14)]
    assert tables.run(lambda connection: connection.scalar(sa.select(sa.func.count()).select_from(Item))) == 8


def test_an_error_rolls_the_transaction_back(tables: Engine) -> None:
    tables.run(add_users)
    with pytest.raises(sa.exc.IntegrityError):
        tables.run(lambda connection: connection.execute(sa.insert(User), [{"name": "new"}, {"name": "u1"}]))
    assert tables.run(lambda connection: connection.scalar(sa.select(sa.func.count()).select_from(User))) == 5


def test_the_inspector_sees_tables_and_columns(tables: Engine) -> None:
    def look(connection: sa.Connection) -> tuple[Any, ...]:
        inspector = sa.inspect(connection)
        names = [name for name in inspector.get_table_names() if name.startswith("sa_")]
        columns = [(column["name"], str(column["type"]), column["nullable"]) for column in inspector.get_columns("sa_user")]
        return sorted(names), inspector.get_schema_names(), columns, inspector.get_foreign_keys("sa_item")

    names, schemas, columns, keys = tables.run(look)
    assert names == ["sa_item", "sa_user"]
    assert "public" in schemas
    assert columns == [
        ("id", "INTEGER", False),
        ("name", "VARCHAR(50)", False),
        ("age", "INTEGER", True),
        ("born", "TIMESTAMP", True),
        ("price", "NUMERIC(10, 2)", True),
        ("active", "BOOLEAN", False),
    ]
    assert [(key["constrained_columns"], key["referred_table"], key["referred_columns"]) for key in keys] == [
        (["user_id"], "sa_user", ["id"])
    ]


def test_the_inspector_sees_keys_and_indexes(tables: Engine) -> None:
    def look(connection: sa.Connection) -> tuple[Any, ...]:
        inspector = sa.inspect(connection)
        indexes = [(index["name"], index["column_names"], index["unique"]) for index in inspector.get_indexes("sa_item")]
        unique = [constraint["column_names"] for constraint in inspector.get_unique_constraints("sa_user")]
        return inspector.get_pk_constraint("sa_user")["constrained_columns"], indexes, unique

    assert tables.run(look) == (["id"], [("ix_sa_item_user_id", ["user_id"], False)], [["name"]])


def test_the_inspector_sees_keys_that_were_added_to_rows(engine: Engine) -> None:
    def look(connection: sa.Connection) -> tuple[Any, ...]:
        for sql in (
            "CREATE TABLE sa_added (id integer, name varchar(20))",
            "INSERT INTO sa_added VALUES (1, 'one'), (2, 'two')",
            "CREATE TABLE sa_child (added_id integer)",
            "INSERT INTO sa_child VALUES (2)",
            "ALTER TABLE sa_added ADD CONSTRAINT pk_added PRIMARY KEY (id, name)",
            "ALTER TABLE sa_added DROP CONSTRAINT pk_added",
            "ALTER TABLE sa_added ADD PRIMARY KEY (id)",
            "ALTER TABLE sa_child ADD FOREIGN KEY (added_id) REFERENCES sa_added",
        ):
            connection.exec_driver_sql(sql)
        inspector = sa.inspect(connection)
        key, (reference,) = inspector.get_pk_constraint("sa_added"), inspector.get_foreign_keys("sa_child")
        found = key["name"], key["constrained_columns"], inspector.get_indexes("sa_added"), reference["name"], reference["referred_columns"]
        connection.exec_driver_sql("DROP TABLE sa_child, sa_added")
        return found

    assert engine.run(look) == ("sa_added_pkey", ["id"], [], "sa_child_added_id_fkey", ["id"])


def test_reflected_tables_can_be_used(tables: Engine) -> None:
    tables.run(add_users)

    def look(connection: sa.Connection) -> Any:
        metadata = sa.MetaData()
        metadata.reflect(connection, only=["sa_user", "sa_item"])
        item, user = metadata.tables["sa_item"], metadata.tables["sa_user"]
        joined = sa.select(sa.func.count()).select_from(item.join(user)).where(user.c.name == "u1")
        return connection.scalar(joined), [column.name for column in user.primary_key]

    assert tables.run(look) == (2, ["id"])


def test_a_row_of_a_reflected_table_gets_its_number(tables: Engine) -> None:
    def add(connection: sa.Connection) -> Any:
        user = sa.Table("sa_user", sa.MetaData(), autoload_with=connection)
        assert user.autoincrement_column is user.c.id
        key = connection.execute(user.insert().values(name="reflected", active=True)).inserted_primary_key
        return key is not None and key[0] > 0

    assert tables.run(add)
