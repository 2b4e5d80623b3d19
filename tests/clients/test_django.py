"""Django with its PostgreSQL backend: connection, introspection, models made by the schema editor, and the ORM."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.clients.foreign import leader_port
from tests.clients.stand import Db

NOW = dt.datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=dt.UTC)


class Models:
    """The two models; Django wants its settings before it makes any."""

    book: Any
    page: Any


@pytest.fixture(scope="module")
def models(shared: Db) -> Iterator[Models]:
    import django
    from django.conf import settings
    from django.db import connection
    from django.db import models as fields

    place = {"NAME": shared.name, "USER": "tester", "HOST": "127.0.0.1", "PORT": leader_port(shared)}
    settings.configure(
        DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", **place}},
        INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "django.contrib.sessions"],
        USE_TZ=True,
        TIME_ZONE="UTC",
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    )
    django.setup()

    class Book(fields.Model):  # type: ignore[misc]
        name = fields.CharField(max_length=50, unique=True)
        pages = fields.IntegerField(null=True)
        at = fields.DateTimeField(null=True)
        day = fields.DateField(null=True)
        price = fields.DecimalField(max_digits=10, decimal_places=2, null=True)
        ok = fields.BooleanField(default=True)
        extra = fields.JSONField(null=True)

        class Meta:
            app_label = "dj"

    class Page(fields.Model):  # type: ignore[misc]
        book = fields.ForeignKey(Book, on_delete=fields.CASCADE)
        number = fields.IntegerField()

        class Meta:
            app_label = "dj"
            constraints = (
                fields.UniqueConstraint(fields=("book", "number"), name="dj_page_once"),
                fields.CheckConstraint(condition=fields.Q(number__gte=0), name="dj_page_number"),
            )

    found = Models()
    found.book, found.page = Book, Page
    with connection.schema_editor() as editor:
        editor.create_model(Book)
        editor.create_model(Page)
    yield found
    with connection.schema_editor() as editor:
        editor.delete_model(Page)
        editor.delete_model(Book)
    connection.close()


@pytest.fixture
def books(models: Models) -> Iterator[Any]:
    models.book.objects.create(name="first", pages=1, at=NOW, day=NOW.date(), price=Decimal("1.50"), extra={"a": [1, None]})
    models.book.objects.create(name="Second", pages=20)
    yield models.book.objects
    # Models of an application that is not installed do not know who refers to them.
    models.page.objects.all().delete()
    models.book.objects.all().delete()


def test_introspection_sees_tables_columns_and_constraints(models: Models) -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        names = connection.introspection.table_names(cursor)
        assert {"dj_book", "dj_page"} <= set(names)
        described = {column.name: column for column in connection.introspection.get_table_description(cursor, "dj_book")}
        assert described["id"].is_autofield
        assert described["pages"].null_ok
        assert not described["name"].null_ok
        constraints = connection.introspection.get_constraints(cursor, "dj_page")
        assert constraints["dj_page_once"]["columns"] == ["book_id", "number"]
        assert constraints["dj_page_once"]["unique"] is True
        assert constraints["dj_page_number"]["check"] is True
        assert [one["columns"] for one in constraints.values() if one["primary_key"]] == [["id"]]
        assert connection.introspection.get_primary_key_columns(cursor, "dj_page") == ["id"]


def test_a_row_comes_back_as_it_was_saved(books: Any) -> None:
    found = books.get(name="first")
    assert (found.pages, found.at, found.day, found.price, found.ok) == (1, NOW, NOW.date(), Decimal("1.50"), True)
    assert found.extra == {"a": [1, None]}
    found.pages, found.at = 9, None
    found.save()
    assert books.filter(pages=9, at__isnull=True).count() == 1


def test_get_or_create_and_update_or_create(books: Any) -> None:
    assert books.get_or_create(name="first")[1] is False
    made, is_new = books.get_or_create(name="third", defaults={"pages": 3})
    assert (made.pages, is_new) == (3, True)
    assert books.update_or_create(name="third", defaults={"pages": 4})[0].pages == 4
    assert books.filter(name="third").update(pages=5) == 1


def test_bulk_changes(models: Models, books: Any) -> None:
    made = books.bulk_create([models.book(name=f"n{number}", pages=number, at=NOW, ok=number % 2 == 0) for number in range(10)])
    assert all(book.pk for book in made)
    assert books.filter(name__startswith="n", ok=True).count() == 5
    assert books.get(name="n3").at == NOW
    again = [models.book(name=f"n{number}", pages=number + 100) for number in range(3)]
    books.bulk_create(again, update_conflicts=True, unique_fields=["name"], update_fields=["pages"])
    assert list(books.filter(pages__gte=100).order_by("pages").values_list("name", flat=True)) == ["n0", "n1", "n2"]
    some = list(books.filter(name__in=["n4", "n5"]))
    for book in some:
        book.pages = 77
    assert books.bulk_update(some, ["pages"]) == 2
    assert books.filter(pages=77).delete()[0] == 2


def test_lookups(books: Any) -> None:
    def names(**conditions: Any) -> list[str]:
        return list(books.filter(**conditions).order_by("name").values_list("name", flat=True))

    assert names(name__icontains="SECO") == ["Second"]
    assert names(name__contains="SECO") == []
    assert names(name__iexact="second") == ["Second"]
    assert names(name__startswith="Sec") == ["Second"]
    assert names(name__in=["first", "none"], pages__lt=5) == ["first"]
    assert names(at__gte=NOW - dt.timedelta(days=1), day=NOW.date()) == ["first"]
    assert names(at__year=2026) == ["first"]
    assert books.filter(pages=20).exists() is True
    assert books.filter(pages=21).exists() is False


def test_aggregates(books: Any) -> None:
    from django.db.models import Avg, Count, Max, Sum

    found = books.aggregate(total=Sum("pages"), mean=Avg("pages"), number=Count("id"), last=Max("at"))
    assert found == {"total": 21, "mean": 10.5, "number": 2, "last": NOW}


def test_joins_and_constraints(models: Models, books: Any) -> None:
    from django.db import IntegrityError, transaction

    book = books.get(name="first")
    models.page.objects.create(book=book, number=1)
    assert list(models.page.objects.filter(book__name="first").values_list("number", "book__pages")) == [(1, 1)]
    for number in (1, -1):
        with pytest.raises(IntegrityError), transaction.atomic():
            models.page.objects.create(book=book, number=number)
    assert models.page.objects.count() == 1


def test_atomic_blocks(models: Models, books: Any) -> None:
    from django.db import IntegrityError, transaction

    with transaction.atomic():
        models.book.objects.create(name="kept")
        with pytest.raises(IntegrityError), transaction.atomic():
            models.book.objects.create(name="kept")
        assert books.select_for_update().filter(name="kept").count() == 1
    assert books.filter(name="kept").count() == 1


def test_the_contributed_applications_migrate(models: Models, shared: Db) -> None:
    from django.contrib.auth.models import Permission, User
    from django.core.management import call_command
    from django.db import connection

    call_command("migrate", verbosity=0)
    call_command("migrate", verbosity=0)
    user = User.objects.create_user("bob", "bob@example.org", "secret")
    user.user_permissions.add(Permission.objects.get(codename="add_user"))
    assert User.objects.get(username="bob").check_password("secret")
    assert User.objects.get(username="bob").has_perm("auth.add_user")
    assert Permission.objects.count() == 20
    with connection.cursor() as cursor:
        relations = connection.introspection.get_relations(cursor, "auth_permission")
        assert relations == {"content_type_id": ("id", "django_content_type")}
        assert len(connection.introspection.table_names(cursor)) >= 10
    for node in shared.followers():
        shared.wait_for_value(node, "SELECT count(*) FROM auth_permission", 20)


def test_a_table_with_rows_gets_a_foreign_key_and_no_other_type(models: Models, books: Any) -> None:
    from django.db import connection, utils

    book = books.get(name="first")
    models.page.objects.create(book=book, number=book.pk)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE dj_page ADD CONSTRAINT k FOREIGN KEY (number) REFERENCES dj_book (id) DEFERRABLE INITIALLY DEFERRED")
        assert connection.introspection.get_relations(cursor, "dj_page")["number"] == ("id", "dj_book")
    with pytest.raises(utils.IntegrityError):
        models.page.objects.create(book=book, number=1_000_000)
    with connection.cursor() as cursor, pytest.raises(utils.NotSupportedError, match="ALTER COLUMN … TYPE needs an empty table"):
        cursor.execute("ALTER TABLE dj_page ALTER COLUMN number TYPE bigint")


def test_fixtures_are_loaded_checked_and_numbered(models: Models, shared: Db, tmp_path: Path) -> None:
    from django.contrib.auth.models import Group
    from django.contrib.contenttypes.models import ContentType
    from django.core.management import call_command
    from django.db import IntegrityError

    call_command("migrate", verbosity=0)
    # The permission comes before the type that it refers to.
    permission = {"model": "auth.permission", "pk": 900, "fields": {"name": "p", "content_type": 900, "codename": "p"}}
    kind = {"model": "contenttypes.contenttype", "pk": 900, "fields": {"app_label": "loaded", "model": "thing"}}
    group = {"model": "auth.group", "pk": 900, "fields": {"name": "g", "permissions": [900]}}
    file = tmp_path / "rows.json"
    file.write_text(json.dumps([permission, kind, group]))
    call_command("loaddata", str(file), verbosity=0)
    assert [found.codename for found in Group.objects.get(pk=900).permissions.all()] == ["p"]
    assert Group.objects.create(name="next").pk == 901
    permission["pk"], permission["fields"] = 901, {"name": "q", "content_type": 999, "codename": "q"}
    file.write_text(json.dumps([permission]))
    with pytest.raises(IntegrityError):
        call_command("loaddata", str(file), verbosity=0)
    assert ContentType.objects.filter(app_label="loaded").count() == 1
