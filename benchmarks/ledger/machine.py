"""Facts about the machine, memory and processor time of processes, and files that are not in the page cache."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import platform
import shutil
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil

from benchmarks.ledger.processes import CaseFailed

SAMPLE_S = 0.1
MIB = 1 << 20
PAGE_BYTES = mmap.PAGESIZE
SYNC_BYTES = 4096
SYNCS = 500
COLD_ATTEMPTS = 5
RESERVE = "RESERVE"


def facts() -> dict[str, object]:
    """Facts on which the figures depend."""
    model = ""
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    return {
        "processors": os.cpu_count(),
        "processor": model,
        "memory_gib": round(psutil.virtual_memory().total / (1 << 30), 1),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "java": _java_version(),
        "load_at_start": os.getloadavg()[0],
    }


def _java_version() -> str:
    java = shutil.which("java")
    if java is None:
        return ""
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False)
    return answer.stderr.splitlines()[0] if answer.stderr else ""


def commit(root: Path) -> str:
    """The checked-out commit, with a plus if files differ from it."""
    git = ["git", "-C", str(root)]
    found = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, timeout=30, check=False).stdout.strip()
    changed = subprocess.run([*git, "status", "--porcelain", "-uno"], capture_output=True, text=True, timeout=30, check=False).stdout
    return found + ("+" if changed else "")


def fdatasync_p50_ms(folder: Path) -> float:
    """The median of a 4 KiB append to a preallocated file with fdatasync, in milliseconds."""
    path = folder / "fdatasync"
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY)
    try:
        os.posix_fallocate(descriptor, 0, SYNC_BYTES * SYNCS)
        os.fsync(descriptor)
        block = os.urandom(SYNC_BYTES)
        times = []
        for number in range(SYNCS):
            started = time.perf_counter()
            os.pwrite(descriptor, block, number * SYNC_BYTES)
            os.fdatasync(descriptor)
            times.append(time.perf_counter() - started)
    finally:
        os.close(descriptor)
        path.unlink()
    return 1000 * statistics.median(times)


def cpu_seconds(pids: Mapping[str, int]) -> float:
    """Processor seconds of these processes and their children, user and system.

    Raises:
        CaseFailed: one of them has ended.
    """
    total = 0.0
    for name, pid in pids.items():
        try:
            process = psutil.Process(pid)
            for one in (process, *process.children(recursive=True)):
                spent = one.cpu_times()
                total += spent.user + spent.system
        except psutil.NoSuchProcess:
            raise CaseFailed(f"{name} has ended") from None
    return total


def resident_mib(pid: int) -> float | None:
    """Resident bytes; None after the process has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * PAGE_BYTES / MIB
    except (OSError, IndexError):
        return None


class MemorySampler:
    """Samples processes' resident memory every 100 ms from a thread, between entering and leaving."""

    def __init__(self, pids: Callable[[], Mapping[str, int]]) -> None:
        self._pids = pids
        self.samples: dict[str, list[float]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="memory", daemon=True)

    def _run(self) -> None:
        while True:
            for name, pid in self._pids().items():
                mib = resident_mib(pid)
                if mib is not None:
                    self.samples.setdefault(name, []).append(mib)
            if self._stop.wait(SAMPLE_S):
                return

    def __enter__(self) -> MemorySampler:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def peaks(self) -> dict[str, float]:
        return {name: max(samples) for name, samples in self.samples.items() if samples}

    def of_bookies(self, average: Callable[[list[float]], float]) -> float:
        """The value of the bookie with the most memory by this measure."""
        return max(average(samples) for name, samples in self.samples.items() if name.startswith("bookie"))


_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_libc.mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
_MAP_FAILED = ctypes.c_void_p(-1).value


_IS_CACHED = bytes(number & 1 for number in range(256))
"""The lowest bit of `mincore`'s byte per page: the page is resident."""


def cached_pages(path: Path, limit_bytes: int | None = None) -> tuple[int, int]:
    """Number of pages of a file in the page cache, and of all its pages; only of its first bytes if a size is given."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if limit_bytes is not None:
            size = min(size, limit_bytes)
        pages = -(-size // PAGE_BYTES)
        if not pages:
            return 0, 0
        address = _libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, file.fileno(), 0)
        if address == _MAP_FAILED:
            raise OSError(ctypes.get_errno(), f"{path} cannot be mapped")
        try:
            seen = (ctypes.c_ubyte * pages)()
            if _libc.mincore(address, size, seen):
                raise OSError(ctypes.get_errno(), f"mincore of {path}")
        finally:
            _libc.munmap(address, size)
    return bytes(seen).translate(_IS_CACHED).count(1), pages


def make_cold(folders: Sequence[Path]) -> float:
    """Write back the files in these folders and drop them from the page cache; return the share of pages still cached."""
    share = 1.0
    for _ in range(COLD_ATTEMPTS):
        cached = pages = 0
        for path in [path for folder in folders for path in _files(folder)]:
            try:
                descriptor = os.open(path, os.O_RDONLY)
            except FileNotFoundError:
                continue
            try:
                os.fsync(descriptor)
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)
            still, all_pages = cached_pages(path)
            cached, pages = cached + still, pages + all_pages
        share = cached / pages if pages else 0.0
        if share < 0.01:
            break
        time.sleep(0.2)
    return share


def sizes_of(folders: Sequence[Path]) -> dict[Path, int]:
    """The files in these folders and their present sizes, without the reserve, which is never read."""
    sizes = {}
    for path in [path for folder in folders for path in _files(folder) if path.name != RESERVE]:
        with contextlib.suppress(FileNotFoundError):
            sizes[path] = path.stat().st_size
    return sizes


def cached_share(sizes: Mapping[Path, int]) -> float:
    """The share of pages in the page cache, over the first bytes of each file up to the given size. Deleted files do not count."""
    cached = pages = 0
    for path, size in sizes.items():
        with contextlib.suppress(FileNotFoundError):
            here, all_pages = cached_pages(path, size)
            cached, pages = cached + here, pages + all_pages
    return cached / pages if pages else 0.0


def forget(sizes: Mapping[Path, int]) -> float:
    """Drop the first bytes of each file, up to the given size, from the page cache if they are synced; return the share still cached."""
    for path, size in sizes.items():
        with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, size, os.POSIX_FADV_DONTNEED)
    return cached_share(sizes)


def folder_bytes(folder: Path) -> int:
    """Bytes of the files, without our bookies' reserve."""
    total = 0
    for path in [path for path in _files(folder) if path.name != RESERVE]:
        try:
            total += path.stat().st_blocks * 512
        except FileNotFoundError:
            continue
    return total


def _files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()]
