"""A role without the right to read sees values as the old values of its changes."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.kv.resp.core.command_table import CommandSpec
from triplicate.kv.resp.core.key_commands import KeyCommand
from triplicate.kv.resp.resp_conversation import RespConversation

TESTS = [
    "tests/unit/kv/resp/test_resp_logins.py::test_a_role_has_its_rights_and_its_store",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    right = RespConversation._check_rights

    def check(conversation: RespConversation, spec: CommandSpec, command: KeyCommand) -> None:
        if "readonly" in spec.flags or not conversation._session.rights.may_write:
            right(conversation, spec, command)

    patch(RespConversation, "_check_rights", check)
