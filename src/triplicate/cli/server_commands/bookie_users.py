"""``triplicate bookie user``: the users that may log in at a bookie."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable

import click

from triplicate.cli.server_commands.bookie_command import bookie, configuration_of
from triplicate.cli.terminal.output import print_json, print_table
from triplicate.config import BookieSettings
from triplicate.errors import ArgumentError, ConfigError
from triplicate.security import BookieRole, User, change_users, new_user, parse_roles, read_secret_file, read_users

PASSWORD_VARIABLE = "TRIPLICATE_USER_PASSWORD"
SALT_BYTES = 16
SETTING = "bookie.users_file"


@bookie.group("user")
def user() -> None:
    """Set, remove and list the users that may log in at a bookie.

    They are in the file bookie.users_file, which a running bookie reads again within seconds. Passwords come from a file, from the variable
    TRIPLICATE_USER_PASSWORD or from the terminal, and are never shown.
    """


def file_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that name the file."""
    for option in (
        click.option("--users-file", metavar="FILE", help="The file of users. Default: bookie.users_file of --config."),
        click.option("--config", type=click.Path(dir_okay=False), help="TOML file with the settings of the bookie."),
    ):
        command = option(command)
    return command


@user.command("set")
@click.argument("name", metavar="NAME")
@click.option("--roles", metavar="ROLES", help="Comma-separated: read, write, admin. Without it an existing user keeps its roles.")
@click.option("--password-file", metavar="FILE", help="File with the password, which only its owner may read.")
@click.option(
    "--digest-md5/--no-digest-md5",
    default=True,
    help="Whether Apache's clients may log in as this user. It stores a hash that is as good as the password.",
)
@file_options
@click.pass_context
def set_user(
    context: click.Context,
    name: str,
    roles: str | None,
    password_file: str | None,
    digest_md5: bool,
    config: str | None,
    users_file: str | None,
) -> None:
    """Make the user NAME, or change its roles or its password.

    An existing user keeps its password unless another one is given.
    """
    path = _path(context, config, users_file)
    present = _read(path).get(name)
    if present is None and roles is None:
        raise click.UsageError(f"there is no user {name!r} yet: give --roles")
    password = _password(password_file, name, is_needed=present is None)
    chosen = parse_roles(roles.split(",")) if roles is not None else None

    def change(users: dict[str, User]) -> None:
        old = users.get(name)
        wanted = chosen if chosen is not None else old.roles if old is not None else ()
        if password is not None:
            users[name] = new_user(name, password, wanted, secrets.token_bytes(SALT_BYTES), digest_md5=digest_md5)
        elif old is not None:
            users[name] = User(name, wanted, old.scram, old.password_hash if digest_md5 else None)
        else:
            raise ArgumentError(f"user {name!r} was removed meanwhile: give its password")

    change_users(path, SETTING, change)
    click.echo(f"user {name} {'changed' if present else 'added'} in {path}")


@user.command("remove")
@click.argument("name", metavar="NAME")
@file_options
@click.pass_context
def remove_user(context: click.Context, name: str, config: str | None, users_file: str | None) -> None:
    """Remove the user NAME. A running bookie closes its connections within seconds."""
    path = _path(context, config, users_file)

    def change(users: dict[str, User]) -> None:
        if users.pop(name, None) is None:
            raise ArgumentError(f"{path} has no user {name!r}; there are: {', '.join(sorted(users)) or 'none'}")

    change_users(path, SETTING, change)
    click.echo(f"user {name} removed from {path}")


@user.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@file_options
@click.pass_context
def list_users(context: click.Context, as_json: bool, config: str | None, users_file: str | None) -> None:
    """Show the users, their roles, and the mechanisms that each can use."""
    users = [each for _, each in sorted(_read(_path(context, config, users_file)).items())]
    if as_json:
        print_json(
            [
                {"user": each.name, "roles": [role.value for role in each.roles], "digest_md5": each.password_hash is not None}
                for each in users
            ]
        )
        return
    rows = ((each.name, _roles_text(each), "yes" if each.password_hash is not None else "no") for each in users)
    print_table(("user", "roles", "DIGEST-MD5"), rows)


def _roles_text(one: User) -> str:
    return ", ".join(role.value for role in BookieRole if role in one.roles) or "none"


def _path(context: click.Context, config: str | None, users_file: str | None) -> str:
    flags = {"bookie.users_file": users_file} if users_file else {}
    path = configuration_of(context, config, flags).get(BookieSettings).users_file
    if not path:
        raise ConfigError(f"{SETTING} is not set: give --users-file, or --config with it")
    return path


def _read(path: str) -> dict[str, User]:
    """The users; none if there is no file yet."""
    return read_users(path, SETTING) if os.path.exists(path) else {}


def _password(password_file: str | None, name: str, *, is_needed: bool) -> str | None:
    """The password from the file, the environment or, if one is needed, the terminal; None: none was given."""
    if password_file is not None:
        return read_secret_file(password_file, "--password-file")
    if PASSWORD_VARIABLE in os.environ:
        return os.environ[PASSWORD_VARIABLE]
    if not is_needed:
        return None
    if not sys.stdin.isatty():
        raise click.UsageError(f"give the password of {name!r} by --password-file or the variable {PASSWORD_VARIABLE}")
    return str(click.prompt(f"Password of {name}", hide_input=True, confirmation_prompt=True))
