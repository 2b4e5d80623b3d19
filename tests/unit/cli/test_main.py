"""A command line that cannot be done ends with one line that says what to do, and the right exit code."""

from __future__ import annotations

import importlib
import re
import runpy
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from triplicate.cli import main as command
from triplicate.cli.terminal.extras import DISTRIBUTIONS, INSTALL_OF, SEPARATE, is_installed
from triplicate.cli.terminal.options import FiniteRange
from triplicate.errors import ConfigError, NoSuchLedger, SqlError
from triplicate.metadata.service_uri import KNOWN


def run(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)
    output = capsys.readouterr()
    code = ended.value.code
    assert isinstance(code, int)
    return code, output.out, output.err


@pytest.mark.parametrize("name", list(command.COMMANDS))
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run([name, "--help"], capsys)
    assert code == 0
    assert out.startswith(f"Usage: triplicate {name}")


@pytest.mark.parametrize("name", list(command.COMMANDS))
def test_the_summary_in_the_table_is_the_first_paragraph_of_the_commands_own_help(name: str) -> None:
    module, _, attribute = command.COMMANDS[name].place.partition(":")
    own: click.Command = getattr(importlib.import_module(module), attribute)
    assert " ".join((own.help or "").split("\n\n")[0].split()) == command.COMMANDS[name].summary
    assert own.hidden == (name in command.HIDDEN)


def test_the_help_of_all_commands_imports_none_of_them() -> None:
    program = (
        "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); from triplicate.cli.main import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", program, "--help"], capture_output=True, text=True, check=True)
    for name, entry in command.COMMANDS.items():
        listed = name not in command.HIDDEN and is_installed(entry.place.partition(".")[0])
        assert (f"\n  {name} " in done.stdout) == listed
        assert not listed or entry.summary.split()[-1] in done.stdout
    imported = done.stderr.split()
    ours = {name for name in imported if name.startswith("triplicate")}
    expected = {"triplicate", "triplicate.errors", "triplicate.cli", "triplicate.cli.main", "triplicate.cli.terminal"}
    assert ours == {*expected, "triplicate.cli.terminal.extras", "triplicate.cli.terminal.pipes"}
    assert not {"asyncio", "rich", "apsw", "google", "prometheus_client", "psycopg", "zstandard"} & set(imported)
    assert len(imported) < 250


def test_commands_that_need_no_database_do_not_import_the_database_layer() -> None:
    names = ("up", "bookie", "doctor", "cluster", "ledger", "log", "zookeeper")
    modules = ", ".join(command.COMMANDS[name].place.partition(":")[0] for name in names)
    program = f"import sys, {modules}; print(*(name for name in sys.modules if name.startswith('triplicate.sql')))"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip() == ""


def commands(group: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    yield path, group
    if isinstance(group, click.Group):
        context = click.Context(group)
        for name in group.list_commands(context):
            child = group.get_command(context, name)
            assert child is not None
            yield from commands(child, f"{path} {name}")


def test_every_subcommand_and_option_has_help() -> None:
    for path, one in commands(command.cli, "triplicate"):
        assert one.help, f"{path} has no help"
        for parameter in one.params:
            if isinstance(parameter, click.Option) and not parameter.hidden:
                assert parameter.help, f"{path} {parameter.opts[0]} has no help"


@pytest.mark.parametrize("text", ["nan", "inf", "-inf"])
def test_no_option_takes_a_number_that_is_not_finite(text: str) -> None:
    """NaN is within all bounds of click's own type. A wait of it fails, or never ends."""
    found, refused = [], 0
    for path, one in commands(command.cli, "triplicate"):
        for parameter in one.params:
            try:
                if isinstance(parameter.type.convert(text, parameter, None), float):
                    found.append(f"{path} {parameter.opts[0]}")
            except click.BadParameter:
                refused += isinstance(parameter.type, FiniteRange)
    assert not found, "use FiniteRange of triplicate.cli.terminal.options"
    assert refused > 20


def test_an_unknown_command_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(["ledgre"], capsys)
    assert code == 2
    assert "No such command 'ledgre'" in err


@pytest.mark.parametrize(("typed", "meant"), [("ups", "'up'"), ("databse", "'database'"), ("ledgre", "'ledger'")])
def test_an_unknown_command_is_refused_with_the_near_ones(typed: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run([typed], capsys)
    assert code == 2
    assert f"No such command '{typed}'. Did you mean {meant}?" in err


def test_a_hidden_command_is_not_proposed(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(["zookeepr"], capsys)
    assert code == 2
    assert "Did you mean" not in err


def test_an_invalid_ledger_id_is_refused_with_the_command_that_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    for typed in ("abc", "-1x", "1.5"):
        code, _, err = run(["ledger", "show", "--", typed], capsys)
        assert code == 2
        assert f"{typed!r} is no ledger id; give a number, as `triplicate ledger list` shows them" in err


BOOKIE = ["bookie", "--bookie-id", "b", "--journal-directories", "j", "--ledger-directories", "l"]
NODE = ["node", "--node-id", "n", "--directory", "d"]


@pytest.mark.parametrize("arguments", [["log", "list"], BOOKIE, NODE])
def test_a_relative_path_in_a_store_is_reported_with_the_absolute_one(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = run([*arguments, "--metadata", "sqlite://c/metadata.db"], capsys)
    assert code == 1
    expected = f"'sqlite://c/metadata.db' is not the address of a metadata store; did you mean sqlite://{tmp_path}/c/metadata.db? "
    assert err.splitlines()[-1] == f"triplicate: {expected}known are: {KNOWN}"


def test_a_range_that_runs_backwards_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(["log", "read", "events", "--from", "1", "--to", "0"], capsys)
    assert code == 2
    assert "--to 0 is before --from 1" in err


PLAIN_INSTALL = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {missing!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
from triplicate.cli.main import main
main(sys.argv[1:])
"""


def run_without(missing: set[str], *arguments: str) -> subprocess.CompletedProcess[str]:
    program = PLAIN_INSTALL.format(missing=missing)
    return subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=120, check=False)


def test_the_demonstration_names_its_package_in_a_plain_install(tmp_path: Path) -> None:
    answer = run_without(set(INSTALL_OF), "demo", "--dir", str(tmp_path / "demo"))
    assert answer.returncode == 1
    assert len(answer.stderr.splitlines()) == 1, answer.stderr
    assert "psycopg" in answer.stderr
    assert answer.stderr.endswith("pip install 'triplicate-demo'\n")
    assert not (tmp_path / "demo").exists()


def test_all_commands_are_listed_in_a_plain_install() -> None:
    answer = run_without(set(INSTALL_OF), "--help")
    assert answer.returncode == 0, answer.stderr
    assert "demo " in answer.stdout


@pytest.mark.parametrize(
    ("package", "cure"), [("kazoo", "triplicate[zookeeper]"), ("psycopg", "triplicate[spark]"), ("rich", "force-reinstall")]
)
def test_a_missing_package_is_reported_in_one_line_by_every_command(
    package: str, cure: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(name: str) -> object:
        raise ModuleNotFoundError(f"No module named '{package}.client'", name=f"{package}.client")

    monkeypatch.setattr(importlib, "import_module", broken)
    code, out, err = run(["log", "list"], capsys)
    assert (code, out) == (1, "")
    assert len(err.splitlines()) == 1
    assert package in err
    assert cure in err


def test_a_missing_module_of_our_own_is_no_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> object:
        raise ModuleNotFoundError("No module named 'triplicate.nothing'", name="triplicate.nothing")

    monkeypatch.setattr(importlib, "import_module", broken)
    with pytest.raises(ModuleNotFoundError):
        command.main(["log", "list"])


@pytest.mark.parametrize(("name", "package"), [("sim", "triplicate_simulator"), ("demo", "triplicate_demo")])
def test_a_command_of_a_separate_package_is_not_listed_without_it_and_names_it_when_called(name: str, package: str) -> None:
    listing = run_without({package}, "--help")
    assert listing.returncode == 0, listing.stderr
    assert f"\n  {name} " not in listing.stdout
    answer = run_without({package}, name, "--help")
    assert (answer.returncode, answer.stdout) == (1, "")
    assert answer.stderr == (
        f"triplicate: this command is in the package {SEPARATE[package]}, which is not installed: "
        f"pip install {SEPARATE[package]}; in a checkout: make setup\n"
    )


def test_every_optional_package_is_a_requirement_of_what_is_named() -> None:
    root = Path(__file__).parents[3]
    extras = tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    requirements = {f"triplicate[{extra}]": listed for extra, listed in extras.items()}
    demo = tomllib.loads((root / "demo" / "pyproject.toml").read_text())["project"]
    requirements[demo["name"]] = demo["dependencies"]
    for package, install in INSTALL_OF.items():
        distribution = DISTRIBUTIONS.get(package, package)
        assert any(re.match(rf"{distribution}\b", requirement) for requirement in requirements[install]), f"{package} is in {install}"
    listed = {re.split(r"[<>=\[ ]", requirement)[0] for install in set(INSTALL_OF.values()) for requirement in requirements[install]}
    assert listed - {"triplicate"} == {DISTRIBUTIONS.get(package, package) for package in INSTALL_OF}
    assert not [requirement for requirement in demo["dependencies"][1:] if requirement not in extras["dev"]], "the lock covers them"


def test_our_errors_are_one_line_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.delenv("TRIPLICATE_METADATA", raising=False)
    monkeypatch.delenv("TRIPLICATE_METADATA_URI", raising=False)
    monkeypatch.chdir(tmp_path)
    code, out, err = run(["ledger", "list"], capsys)
    assert (code, out) == (1, "")
    assert err == "triplicate: which cluster? give --metadata URI, set TRIPLICATE_METADATA, or start one here with `triplicate up`\n"


def test_a_mistyped_cluster_is_named_and_not_made(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    uri = f"sqlite://{tmp_path}/typo.db"
    for arguments in (["ledger", "list"], BOOKIE):
        code, _, err = run([*arguments, "--metadata", uri], capsys)
        assert code == 1
        text = f"metadata file {tmp_path}/typo.db does not exist: correct the address, or start a cluster with `triplicate up`"
        assert err.splitlines()[-1] == f"triplicate: {text}"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("left_out", ["--bookie-id", "--journal-directories", "--ledger-directories", "--node-id", "--directory"])
def test_a_server_does_not_start_without_a_name_and_directories(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, left_out: str
) -> None:
    """With an empty file it would make files in the current directory, and a name in the cluster that stays."""
    monkeypatch.chdir(tmp_path)
    given = BOOKIE if left_out in BOOKIE else NODE
    place = given.index(left_out)
    code, _, err = run([*given[:place], *given[place + 2 :], "--metadata", f"sqlite://{tmp_path}/m.db"], capsys)
    assert code == 1
    setting = f"{given[0]}.{left_out.strip('-').replace('-', '_')}"
    assert err.startswith(f"triplicate: {setting} is not set, and a server does not choose it by itself: put it into the --config file")
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_setting_in_a_file_names_the_nearest(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    config = tmp_path / "bookie.toml"
    config.write_text("[bookie]\nprot = 1\n")
    code, _, err = run(["bookie", "--config", str(config)], capsys)
    assert code == 1
    assert err == f"triplicate: unknown setting bookie.prot (file {config}); did you mean bookie.port?\n"


def test_a_flag_out_of_bounds_names_key_value_and_bounds(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(["bookie", "--port", "70000"], capsys)
    assert code == 1
    assert err == "triplicate: bookie.port = '70000' (flag --bookie-port): at most 65535 is allowed (from 0 to 65535)\n"


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ConfigError("two\n  lines"), "two lines"),
        (FileNotFoundError(2, "No such file or directory", "/x"), "No such file or directory: /x"),
        (SqlError("42601", "syntax error"), "syntax error (SQLSTATE 42601)"),
        (SqlError("3D000", "there is none", hint="Here is one."), "there is none (SQLSTATE 3D000): Here is one."),
        (NoSuchLedger("x"), "x; triplicate ledger list shows those that exist, and triplicate ledger undelete restores deleted ones"),
        (ConfigError(""), "ConfigError"),
    ],
)
def test_an_error_is_printed_in_one_line(error: Exception, line: str) -> None:
    assert command.one_line(error) == line


def test_the_package_run_as_a_program_is_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["triplicate", "sim", "run", "--seeds", "5..3"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("triplicate", run_name="__main__")
    assert ended.value.code == 2
    assert "5..3 runs backwards" in capsys.readouterr().err
