"""Names in a document's text that nothing in the repository has: paths, modules, make targets, commands and their options. Pure.

Each function takes the text and what exists, and returns the names that are missing, in order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Set

import click

FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
INDENTED = re.compile(r"^    .*$", re.MULTILINE)
SPAN = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"(?<![\w./-])((?:src|tests|docs|scripts|benchmarks|simulator|demo)/[\w./-]*\w)")
MODULE = re.compile(r"(?<![\w./-])(?:triplicate(?:_simulator|_demo)?(?:\.[A-Za-z_]\w*)+|(?<=-m )[a-z_][\w.]*)")
TARGET = re.compile(r"^\s*(?:[A-Z_]+=\S+ )*make ((?:[a-z][\w-]*(?: (?=[a-z]))?)+)", re.MULTILINE)
COMMAND = re.compile(r"(?:(?<=^)|(?<=[\s/]))triplicate((?: +[^\s`|;&)]+)+)", re.MULTILINE)
WORD = re.compile(r"[a-z][a-z-]*$")


def code_of(text: str) -> Iterator[str]:
    """The pieces of code in a page: fenced and indented blocks, and spans between backticks outside of blocks."""
    for block in FENCE.findall(text):
        yield block.partition("\n")[2].rpartition("\n")[0]
    rest = FENCE.sub("", text)
    yield from INDENTED.findall(rest)
    yield from SPAN.findall(INDENTED.sub("", rest))


def missing_paths(text: str, exists: Callable[[str], bool]) -> list[str]:
    """Files and folders of the repository in a page's code. Generated folders below ``build`` are no part of it."""
    return [path for code in code_of(text) for path in PATH.findall(code) if not exists(path)]


def missing_modules(text: str, exists: Callable[[str], bool]) -> list[str]:
    """Dotted names of ours in a page's code, and modules that ``python -m`` runs."""
    return [name for code in code_of(text) for name in MODULE.findall(code) if not exists(name)]


def missing_targets(text: str, targets: Set[str]) -> list[str]:
    """Targets that a page's code gives to ``make``."""
    return [name for code in code_of(text) for names in TARGET.findall(code) for name in names.split() if name not in targets]


def missing_commands(text: str, top: click.Command) -> list[str]:
    """Commands of ``triplicate`` in a page's code, down to sub-commands, and options that their command does not have."""
    found = []
    for code in code_of(text):
        for line in COMMAND.findall(code):
            words = line.partition("#")[0].split()
            wrong = _wrong_word(words, top)
            if wrong:
                found.append(f"triplicate {' '.join(words)}: {wrong}")
    return found


def asking_commands(text: str, top: click.Command) -> list[str]:
    """Commands in a page's blocks of code, which are copied as they are, that would ask before they go on: ``--yes`` is missing."""
    blocks = [*FENCE.findall(text), *INDENTED.findall(FENCE.sub("", text))]
    lines = [line.partition("#")[0].split() for block in blocks for line in COMMAND.findall(block)]
    return [f"triplicate {' '.join(words)}" for words in lines if "--yes" not in words and "--yes" in _options_of(words, top)]


def _options_of(words: list[str], command: click.Command) -> set[str]:
    """The options of the command that the words name."""
    context = click.Context(command)
    for word in words:
        following = command.get_command(context, word) if isinstance(command, click.Group) else None
        if following is None:
            break
        command, context = following, click.Context(following, parent=context)
    return _options(command)


def _wrong_word(words: list[str], command: click.Command) -> str:
    """The first word that is neither a command nor an option where it stands; empty if all are."""
    context = click.Context(command)
    options = _options(command)
    for word in words:
        if word.startswith("-"):
            name = word.partition("=")[0]
            if name not in options and name not in ("--help", "-"):
                return name
        elif isinstance(command, click.Group) and WORD.match(word):
            following = command.get_command(context, word)
            if following is None:
                return word
            command, context = following, click.Context(following, parent=context)
            options |= _options(command)
        elif isinstance(command, click.Group):
            return ""  # A placeholder such as COMMAND or an ellipsis.
    return ""


def _options(command: click.Command) -> set[str]:
    return {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
