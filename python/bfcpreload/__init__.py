"""bfcpreload from Python: shows what the pools hold and who holds it, gives memory back, and records a job.

Without a process id the functions are about this process, which must run with libbfcpreload.so
preloaded; with a process id they are about that job, which must be of the same user. Nothing has to
be built: this process is asked by the library's C interface, other processes by the program bfcstat
(on PATH, or named by the variable BFCSTAT), which who(), record() and dump_snapshot() need in any
case. Sizes are in bytes.
"""

from __future__ import annotations

import ctypes
import html
import json
import os
import pickle
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from typing import Any, Dict, Iterator, List, Optional, Tuple, Union

from bfcpreload.installed import Error, library, tool

__all__ = ["Block", "Error", "Frame", "Holder", "Stats", "Who", "dump_snapshot", "is_loaded", "library",
           "record", "snapshot", "stats", "tag", "tool", "trim", "who"]

PathLike = Union[str, "os.PathLike[str]"]


# ---- this process: interpose/api/bfcpreload.h ----


class _Block(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in (
        "start", "size", "requested", "free_before", "free_after", "region_start", "region_size",
        "id")] + [("device", ctypes.c_int32), ("state", ctypes.c_int32)]


class _Stats(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in (
        "reserved", "in_use", "requested", "ready", "pending", "deferred", "largest_free",
        "regions", "blocks", "peak_reserved", "peak_in_use", "peak_requested", "allocations",
        "frees", "hits", "misses", "reserve_calls", "refusals", "release_calls", "retries",
        "out_of_memory")]


def _loaded() -> ctypes.CDLL:
    loaded = ctypes.CDLL(None)
    if not hasattr(loaded, "bfc_interface"):
        raise Error("this process runs without libbfcpreload.so: start it with bfcrun, or with "
                    "LD_PRELOAD, or give the id of a process that does")
    loaded.bfc_trim.restype = ctypes.c_size_t
    loaded.bfc_trim.argtypes = [ctypes.c_size_t]
    loaded.bfc_snapshot.restype = ctypes.c_long
    loaded.bfc_snapshot.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t,
                                     ctypes.c_size_t]
    return loaded


def is_loaded() -> bool:
    """Whether this process runs with libbfcpreload.so."""
    return hasattr(ctypes.CDLL(None), "bfc_interface")


# ---- other processes: asked by bfcstat ----


def _bfcstat() -> str:
    found = os.environ.get("BFCSTAT") or shutil.which("bfcstat")
    try:
        return found or tool("bfcstat")
    except Error:
        raise Error("bfcstat is not on PATH: install bfcpreload, or set BFCSTAT to its path") from None


def _environment() -> Dict[str, str]:
    """Returns the environment for bfcstat, without LD_PRELOAD, because bfcstat itself needs no pool."""
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


@contextmanager
def _starting() -> Iterator[None]:
    """Turns a failure to start bfcstat into an Error, as the variable BFCSTAT may name something that is no program."""
    try:
        yield
    except OSError as error:
        raise Error(f"bfcstat cannot be run: {error}") from None


def _of(pid: Optional[int]) -> str:
    """Returns the process id as bfcstat takes it; None: this process."""
    number = os.getpid() if pid is None else pid
    if not isinstance(number, int) or number <= 0:
        raise Error(f"{pid!r} is no process id")
    return str(number)


def _ask(*arguments: str) -> str:
    with _starting():
        run = subprocess.run([_bfcstat(), *arguments], env=_environment(), stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, check=False)
    if run.returncode:
        raise Error(run.stderr.strip() or f"bfcstat: exit status {run.returncode}")
    return run.stdout


# ---- how results are shown ----


def _size(size: float) -> str:
    sign, size = ("-", -size) if size < 0 else ("", size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{sign}{size:.4g} {unit}"
        size /= 1024
    return f"{sign}{size:.4g} TiB"


def _table(caption: str, head: List[str], rows: List[List[str]], words: int) -> str:
    """Returns a table in HTML. All its columns are of figures, except column number `words`, which is of words."""
    styles = ["text-align:left" if i == words else "text-align:right;white-space:nowrap" for i in range(len(head))]

    def line(kind: str, cells: List[str]) -> str:
        return "<tr>" + "".join(f"<{kind} style='{style}'>{html.escape(cell)}</{kind}>"
                                for style, cell in zip(styles, cells)) + "</tr>"
    return (f"<table><caption style='text-align:left'>{html.escape(caption)}</caption>" + line("th", head) +
            "".join(line("td", row) for row in rows) + "</table>")


def _text_table(head: List[str], rows: List[List[str]]) -> str:
    """Returns a table as text. Its columns are of figures, except the last one, which is of words."""
    wide = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head) - 1)]
    return "\n".join("  ".join([*(cell.rjust(width) for cell, width in zip(row, wide)), row[-1]]) for row in [head, *rows])


# ---- statistics ----


@dataclass(frozen=True)
class Stats:
    """Sums over the pools whose contexts have not ended. Sizes are in bytes; all other figures are counts."""

    reserved: int
    in_use: int
    requested: int
    ready: int
    pending: int
    deferred: int
    largest_free: int
    regions: int
    blocks: int
    peak_reserved: int
    peak_in_use: int
    peak_requested: int
    allocations: int
    frees: int
    hits: int
    misses: int
    out_of_memory: int

    @property
    def hit_rate(self) -> Optional[float]:
        """The share of allocations that the pool served without the driver; None: there were none."""
        calls = self.hits + self.misses
        return self.hits / calls if calls else None

    def _repr_html_(self) -> str:
        sizes = {"reserved", "in_use", "requested", "ready", "pending", "deferred", "largest_free",
                 "peak_reserved", "peak_in_use", "peak_requested"}
        return _table("bfcpreload's pools", ["", ""],
                      [[name.replace("_", " "), _size(value) if name in sizes else f"{value:,}"]
                       for name, value in asdict(self).items()], words=0)


def _stats_of(pid: int, device: int) -> Stats:
    pools = [pool for pool in json.loads(_ask("--json", _of(pid)))["pools"]
             if pool["state"] == "active" and device in (-1, pool["device"])]
    figures = {f.name: sum(pool[f.name] for pool in pools) for f in fields(Stats)
               if f.name != "largest_free"}
    return Stats(largest_free=max((pool["largest_free"] for pool in pools), default=0), **figures)


def stats(pid: Optional[int] = None, device: int = -1) -> Stats:
    """Returns the counters of the pools of one device (its ordinal in the process) or of all devices (-1).

    A peak is the sum of the peaks of all these pools."""
    if pid is not None:
        return _stats_of(pid, device)
    found = _Stats()
    _loaded().bfc_stats(ctypes.c_int(device), ctypes.byref(found),
                         ctypes.c_size_t(ctypes.sizeof(found)))
    return Stats(**{f.name: getattr(found, f.name) for f in fields(Stats)})


# ---- blocks ----


@dataclass(frozen=True)
class Frame:
    """A function in a call stack."""

    function: Optional[str]  # None: not known
    file: str
    line: Optional[int] = None  # None: not known
    offset: Optional[str] = None  # hexadecimal; only for a function that is not of Python
    source: Optional[str] = None  # of a function that is not of Python, if its line is known; `file` is its library
    inlined: bool = False

    def __str__(self) -> str:
        name = os.path.basename(self.source or self.file) or "no file"
        place = f"{name}:{self.line}" if self.line else f"{name}+{self.offset}" if self.offset else name
        return f"{self.function} ({place})" if self.function else place


@dataclass(frozen=True)
class Block:
    """A block of a pool; bfcpreload.h describes the fields."""

    start: int
    size: int
    requested: int
    free_before: int
    free_after: int
    region_start: int
    region_size: int
    id: int  # 0 if the process was asked by its pid
    device: int
    state: str  # "in use", "free", or "pending": work under way may still use it
    # The call stack that allocated the block, innermost first. It is known only if the process was asked by its
    # pid, and is empty otherwise. If the block has no stack, one frame without a file says why.
    frames: Tuple[Frame, ...] = ()


_STATES = ("in use", "free", "pending")


_PYTORCHS_STATES = {"active_allocated": "in use", "inactive": "free", "active_pending_free": "pending"}


def _free_around(blocks: List[Dict[str, Any]], index: int, step: int) -> int:
    """Returns how many bytes are free next to a block: after it if `step` is 1, before it if `step` is -1."""
    free = 0
    index += step
    while 0 <= index < len(blocks) and not blocks[index]["requested_size"]:
        free += blocks[index]["size"]
        index += step
    return free


def _blocks_of(segment: Dict[str, Any]) -> Iterator[Block]:
    blocks = segment["blocks"]
    for index, block in enumerate(blocks):
        frames = tuple(Frame(frame["name"], frame["filename"], frame["line"] or None) for frame in block["frames"])
        yield Block(start=block["address"], size=block["size"], requested=block["requested_size"],
                    free_before=_free_around(blocks, index, -1), free_after=_free_around(blocks, index, 1),
                    region_start=segment["address"], region_size=segment["total_size"], id=0,
                    device=segment["device"], state=_PYTORCHS_STATES[block["state"]], frames=frames)


def _snapshot_of(pid: int, device: int) -> List[Block]:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "snapshot.pickle")
        dump_snapshot(path, pid)
        with open(path, "rb") as file:
            segments = pickle.load(file)["segments"]
    return [block for segment in segments if device in (-1, segment["device"]) for block in _blocks_of(segment)]


def dump_snapshot(path: PathLike, pid: Optional[int] = None, seconds: Optional[float] = None) -> None:
    """Writes the blocks and the last calls, with call stacks, for other viewers.

    If `path` ends in .pickle, the file is PyTorch's memory snapshot; if in .json, it has counters for Perfetto.
    With `seconds`, the function waits for that time, and writes the calls that were made meanwhile."""
    if pid is None:
        _loaded()
    options = [] if seconds is None else [f"--duration={seconds}"]
    _ask("snapshot", "-o", os.fspath(path), *options, _of(pid))


def snapshot(pid: Optional[int] = None, device: int = -1) -> List[Block]:
    """Returns all blocks of the pools of one device or of all devices (-1); in a region they are in address order."""
    if pid is not None:
        return _snapshot_of(pid, device)
    library, size, most = _loaded(), ctypes.sizeof(_Block), 0
    while True:
        blocks = (_Block * most)()
        count = library.bfc_snapshot(device, blocks if most else None, most, size)
        if count < 0:
            raise Error(f"bfc_snapshot: {count}")
        if count <= most:
            break
        most = count + count // 8
    return [Block(state=_STATES[block.state], **{name: getattr(block, name) for name, *_ in _Block._fields_[:-1]})
            for block in blocks[:count]]


def trim(pid: Optional[int] = None, size: Optional[int] = None) -> int:
    """Gives wholly free regions back to the device until `size` bytes have gone back (None: gives all back).

    Returns how many bytes went back. For another process, this is by how much its reserved bytes fell."""
    most = ctypes.c_size_t(-1).value
    if size is not None and not 0 < size <= most:
        raise ValueError(f"size: {size}; accepted are 1 and more, or None for all")
    if pid is None:
        return int(_loaded().bfc_trim(most if size is None else size))
    before = stats(pid).reserved
    _ask("trim", *([] if size is None else [f"--bytes={size}"]), _of(pid))
    return max(0, before - stats(pid).reserved)


# ---- who ----


@dataclass(frozen=True)
class Holder:
    """What a library, a tag or (with frames) a call stack holds. The figures are estimates unless the error is 0.

    If who() compared two moments, they are the change between these."""

    library: str  # "" if the holder is a tag
    bytes: int
    bytes_error: int  # standard error of `bytes`
    blocks: int
    allocated_bytes: int
    allocated_blocks: int
    samples: int
    tag: str = ""  # "" if the holder is a library
    place: str = ""  # the innermost of the frames that is the user's own code
    frames: Tuple[Frame, ...] = ()  # functions of the call stack, innermost first


@dataclass(frozen=True, repr=False)
class Who:
    """Who holds the memory: the answer of who()."""

    pid: int
    stacks: str  # the value of BFC_STACKS: how exact the figures are
    in_use: int  # bytes, by the pools' own counters
    bytes: int  # bytes in use, by the samples
    bytes_error: int
    libraries: List[Holder]
    sites: List[Holder]
    tags: List[Holder]
    seconds: Optional[float] = None  # time between the two moments that were compared; None: there was only one

    def _amount(self) -> str:
        return f"change in {self.seconds:.4g} s" if self.seconds else "in use"

    def _caption(self) -> str:
        return (f"Process {self.pid}: {_size(self.in_use)} {self._amount()}; by the samples {_size(self.bytes)} "
                f"± {_size(self.bytes_error)} (BFC_STACKS={self.stacks})")

    def _tables(self) -> Iterator[Tuple[str, List[str], List[List[str]]]]:
        """Returns two tables, of the libraries and of the largest sites, each as caption, head and rows."""
        def rows(holders: List[Tuple[Holder, str]]) -> List[List[str]]:
            return [[_size(h.bytes), _size(h.bytes_error), f"{h.blocks:,}", name or "unknown"] for h, name in holders]
        head = [self._amount(), "±", "blocks"]
        def where(holder: Holder) -> str:
            frames = [str(frame) for frame in holder.frames]
            return f"{holder.place}: " + " ← ".join(frames if len(frames) <= 8 else [*frames[:7], "…"])
        sites = [(h, where(h)) for h in self.sites if h.bytes]
        more = f" (the largest 20 of {len(sites)})" if len(sites) > 20 else ""
        yield self._caption(), [*head, "library"], rows([(h, os.path.basename(h.library)) for h in self.libraries])
        yield "By call stack" + more, [*head, "where"], rows(sites[:20])

    def __repr__(self) -> str:
        return "\n\n".join(f"{caption}\n{_text_table(head, rows)}" for caption, head, rows in self._tables())

    def _repr_html_(self) -> str:
        return "".join(_table(caption, head, rows, words=3) for caption, head, rows in self._tables())


_TEXTS = ("library", "tag", "place")


def _holder(answer: Dict[str, Any]) -> Holder:
    frames = tuple(Frame(**frame) for frame in answer.get("frames", ()))
    figures = {f.name: answer[f.name] for f in fields(Holder) if f.name not in (*_TEXTS, "frames")}
    return Holder(frames=frames, **{name: answer.get(name, "") for name in _TEXTS}, **figures)


def who(pid: Optional[int] = None, seconds: Optional[float] = None) -> Who:
    """Returns who holds the memory, by library, by tag and by call stack, the largest holders first.

    With `seconds`, returns what changes in that time instead. BFC_STACKS determines how exact the figures are."""
    if pid is None:
        _loaded()
    options = [] if seconds is None else [f"--diff={seconds}"]
    answer = json.loads(_ask("who", "--json", *options, _of(pid)))
    return Who(pid=answer["pid"], stacks=answer["stacks"], in_use=answer["in_use"],
               bytes=answer["all"]["bytes"], bytes_error=answer["all"]["bytes_error"], seconds=answer.get("seconds"),
               libraries=[_holder(one) for one in answer["libraries"]],
               tags=[_holder(one) for one in answer["tags"]],
               sites=[_holder(one) for one in answer["sites"]])


# ---- tags ----


@contextmanager
def tag(name: str) -> Iterator[None]:
    """Tags what this thread allocates while the body runs. Does nothing if the library is not loaded."""
    loaded = ctypes.CDLL(None)
    tagged = hasattr(loaded, "bfc_tag_push")
    if tagged:
        loaded.bfc_tag_push(name.encode())
    try:
        yield
    finally:
        if tagged:
            loaded.bfc_tag_pop()


# ---- recording ----


def _state_of(path: PathLike) -> Optional[tuple]:
    """Returns a value that changes when something is written to the file; None: there is no such file."""
    try:
        state = os.stat(path)
    except OSError:
        return None
    return state.st_ino, state.st_size, state.st_mtime_ns


def _await_recording(recorder: "subprocess.Popen[str]", path: PathLike, before: Optional[tuple]) -> None:
    """Waits until the first lines are in the file, the recorder has ended, or 5 seconds are over.

    The limit is for a pipe, whose size does not show that something was written."""
    until = time.monotonic() + 5
    while recorder.poll() is None and time.monotonic() < until:
        now = _state_of(path)
        if now not in (None, before) and now[1]:
            return
        time.sleep(0.01)


@contextmanager
def record(path: PathLike, pid: Optional[int] = None, interval: float = 0.25) -> Iterator[None]:
    """Records samples of a job into a file while the body runs, for bfcstat report."""
    if pid is None:
        _loaded()
    command = [_bfcstat(), "record", "-o", os.fspath(path), f"--interval={interval}",
               _of(pid)]
    before = _state_of(path)
    with _starting():
        recorder = subprocess.Popen(command, env=_environment(), stdin=subprocess.DEVNULL,
                                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        _await_recording(recorder, path, before)
        if not recorder.poll():
            yield
    finally:
        ended = recorder.poll()
        recorder.terminate()
        said = recorder.communicate()[1].strip()
    if ended:
        raise Error(said or f"bfcstat record: exit status {ended}")
