"""A command line that cannot be done ends with one line that says what to do, and the right exit code."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import click
import pytest

from triplicate.cli import main as command
from triplicate.errors import ConfigError, SqlError


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


def test_every_subcommand_and_option_has_help() -> None:
    def visit(group: click.Command, path: str) -> None:
        assert group.help, f"{path} has no help"
        for parameter in group.params:
            if isinstance(parameter, click.Option) and not parameter.hidden:
                assert parameter.help, f"{path} {parameter.opts[0]} has no help"
        if isinstance(group, click.Group):
            context = click.Context(group)
            for name in group.list_commands(context):
                child = group.get_command(context, name)
                assert child is not None
                visit(child, f"{path} {name}")

    visit(command.cli, "triplicate")


def test_an_unknown_command_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(["ledgre"], capsys)
    assert code == 2
    assert "No such command 'ledgre'" in err


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
    for arguments in (["ledger", "list"], ["bookie"]):
        code, _, err = run([*arguments, "--metadata", uri], capsys)
        assert code == 1
        assert err.splitlines()[-1] == f"triplicate: there is no cluster at {uri}: start one with `triplicate up`, or check the address"
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
        (ConfigError(""), "ConfigError"),
    ],
)
def test_an_error_is_told_in_one_line(error: Exception, line: str) -> None:
    assert command.one_line(error) == line


def test_the_package_run_as_a_program_is_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["triplicate", "sim", "run", "--seeds", "5..3"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("triplicate", run_name="__main__")
    assert ended.value.code == 2
    assert "5..3 runs backwards" in capsys.readouterr().err
