"""Alembic with the default connection: upgrade, current, downgrade, and autogenerate."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config

from tests.clients.foreign import leader_port
from tests.clients.stand import Db

ENVIRONMENT = """
import sqlalchemy as sa
from alembic import context

metadata = sa.MetaData()
sa.Table("al_first", metadata, sa.Column("id", sa.Integer, primary_key=True), sa.Column("x", sa.String(20), index=True),
         sa.Column("added", sa.Integer, server_default="7"))
sa.Table("al_second", metadata, sa.Column("id", sa.BigInteger, primary_key=True), sa.Column("n", sa.String(20), nullable=False),
         sa.Column("first_id", sa.Integer, sa.ForeignKey("al_first.id")))

def mine(name, kind, parents):
    return kind != "table" or name is None or name.startswith("al_")

engine = sa.create_engine(context.config.get_main_option("sqlalchemy.url"))
with engine.connect() as connection:
    context.configure(connection=connection, target_metadata=metadata, include_name=mine)
    with context.begin_transaction():
        context.run_migrations()
engine.dispose()
"""
FIRST = """
revision = "a1"
down_revision = None
from alembic import op
import sqlalchemy as sa
def upgrade():
    op.create_table("al_first", sa.Column("id", sa.Integer, primary_key=True), sa.Column("x", sa.String(20)))
def downgrade():
    op.drop_table("al_first")
"""
SECOND = """
revision = "a2"
down_revision = "a1"
from alembic import op
import sqlalchemy as sa
def upgrade():
    op.add_column("al_first", sa.Column("added", sa.Integer, server_default="7"))
    op.create_index("ix_al_first_x", "al_first", ["x"])
def downgrade():
    op.drop_index("ix_al_first_x", "al_first")
    op.drop_column("al_first", "added")
"""


class Project:
    """A folder of migrations, and Alembic's output."""

    def __init__(self, folder: Path, database: Db) -> None:
        self.database = database
        self.printed = io.StringIO()
        self.versions = folder / "versions"
        self.versions.mkdir(parents=True)
        (folder / "env.py").write_text(ENVIRONMENT)
        (folder / "script.py.mako").write_text(
            "revision = ${repr(up_revision)}\ndown_revision = ${repr(down_revision)}\nfrom alembic import op\nimport sqlalchemy as sa\n"
            '${imports if imports else ""}\ndef upgrade():\n    ${upgrades if upgrades else "pass"}\n'
            'def downgrade():\n    ${downgrades if downgrades else "pass"}\n'
        )
        (self.versions / "a1.py").write_text(FIRST)
        (self.versions / "a2.py").write_text(SECOND)
        self.config = Config(stdout=self.printed)
        self.config.set_main_option("script_location", str(folder))
        self.config.set_main_option("path_separator", "os")
        url = f"postgresql+psycopg://tester@127.0.0.1:{leader_port(database)}/{database.name}"
        self.config.set_main_option("sqlalchemy.url", url)

    def tables(self) -> list[str]:
        with self.database.writable() as connection:
            found = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'al_%' ORDER BY name").fetchall()
        return [str(name) for (name,) in found]

    def current(self) -> str:
        self.printed.seek(0)
        self.printed.truncate()
        command.current(self.config)
        return self.printed.getvalue().strip()


@pytest.fixture
def project(shared: Db, tmp_path: Path) -> Iterator[Project]:
    made = Project(tmp_path / "migrations", shared)
    yield made
    with shared.writable() as connection:
        for table in made.tables():
            connection.execute(f"DROP TABLE {table}".encode())


def test_upgrade_and_downgrade(project: Project) -> None:
    assert project.current() == ""
    command.upgrade(project.config, "a1")
    assert project.current() == "a1"
    with project.database.writable() as connection:
        connection.execute("INSERT INTO al_first(x) VALUES ('kept')")
    command.upgrade(project.config, "head")
    assert project.current() == "a2 (head)"
    with project.database.writable() as connection:
        assert connection.execute("SELECT * FROM al_first").fetchall() == [(1, "kept", 7)]
    command.downgrade(project.config, "a1")
    with project.database.writable() as connection:
        assert connection.execute("SELECT * FROM al_first").fetchall() == [(1, "kept")]
    command.downgrade(project.config, "base")
    assert project.tables() == ["alembic_version"]


def test_autogenerate_finds_only_missing_objects(project: Project) -> None:
    command.upgrade(project.config, "head")
    made = command.revision(project.config, "second table", autogenerate=True)
    assert made is not None
    assert not isinstance(made, list)
    text = Path(made.path).read_text()
    assert text.count("op.create_table") == 1
    assert "'al_second'" in text
    assert "op.alter_column" not in text
    assert "al_first'," not in text.split("def downgrade")[0].replace("['al_first.id']", "")
    command.upgrade(project.config, "head")
    command.check(project.config)
    command.downgrade(project.config, "base")
