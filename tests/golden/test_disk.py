"""A bookie's data folder of format 1, as a killed bookie left it: every later release opens it."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from tests.golden.disk.make import KEY_OF, storage_in
from triplicate.runtime import real_host

FORMAT_1 = Path(__file__).parent / "disk" / "format-1"


async def check(folder: Path) -> None:
    storage = storage_in(real_host("golden"), folder)
    await storage.open()
    try:
        for ledger_id, entry_ids in ((1, [*range(10), *range(20, 30)]), (2, list(range(5)))):
            for entry_id in entry_ids:
                body = storage.read(ledger_id, entry_id)
                assert body is not None
                assert KEY_OF[ledger_id].decode(body, entry_id).payload == b"entry %02d" % entry_id
            handle = await storage.load(ledger_id)
            assert handle.last_entry_id == entry_ids[-1]
            assert handle.master_key == KEY_OF[ledger_id].master_key
        assert storage.read(1, 15) is None
        first, third = await storage.load(1), await storage.load(3)
        assert first.fenced
        assert first.explicit_lac is not None
        assert KEY_OF[1].decode_lac(first.explicit_lac) == 8
        assert third.fenced
        assert third.last_entry_id == -1
        assert not (await storage.load(2)).fenced
        assert not (await storage.load(4)).exists
    finally:
        await storage.close(flush=True)


@pytest.mark.parametrize("with_index", [True, False])
def test_the_folder_of_format_1_opens_with_everything_in_it(tmp_path: Path, with_index: bool) -> None:
    folder = tmp_path / "data"
    shutil.copytree(FORMAT_1, folder)
    if not with_index:
        for name in ("index.db", "index.db-commits"):
            (folder / "ledgers" / "current" / name).unlink()
    asyncio.run(check(folder))
    # Once more, now as this release has left it.
    asyncio.run(check(folder))
