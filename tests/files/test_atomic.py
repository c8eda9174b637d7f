import itertools
import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from torch_diode.files.atomic import replacing, write_bytes, write_text
from torch_diode.types.errors import FileFaultError


@pytest.mark.parametrize("parent", [None, "/dev/shm"])
def test_a_reader_of_the_old_file_reads_it_to_its_end(parent):
    if parent and not os.access(parent, os.W_OK):
        pytest.skip(f"needs {parent}")
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        target = Path(folder) / "file"
        write_bytes(target, b"old")
        with target.open("rb") as reader:
            write_bytes(target, b"new and longer")
            assert reader.read() == b"old"
        assert target.read_bytes() == b"new and longer"


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    target = tmp_path / "file"
    write_bytes(target, b"old")

    def fail_half_way():
        with replacing(target) as temporary:
            temporary.write_bytes(b"half of the ne")
            raise RuntimeError("the disk is full")

    with pytest.raises(RuntimeError):
        fail_half_way()
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_without_overwrite_an_existing_file_is_refused_also_one_made_meanwhile(tmp_path):
    target, link = tmp_path / "file", tmp_path / "link"
    link.symlink_to(target)

    def write_while_another_does():
        with replacing(link, overwrite=False) as temporary:
            temporary.write_text("ours")
            target.write_text("theirs")

    with pytest.raises(FileFaultError, match="file: exists already"):
        write_while_another_does()
    with pytest.raises(FileFaultError, match="file: exists already; choose another name or give"):
        write_text(target, "ours", overwrite=False)
    assert target.read_text() == "theirs"
    write_text(Path(os.devnull), "a device is not replaced", overwrite=False)
    assert {path.name for path in tmp_path.iterdir()} == {"file", "link"}


def refusal(path: Path, overwrite: bool, meanwhile: Callable[[], None] = lambda: None) -> str:
    """The reason why a file could not be written; empty if it was."""
    try:
        with replacing(path, overwrite) as temporary:
            temporary.write_bytes(b"new")
            meanwhile()
    except FileFaultError as fault:
        return str(fault)
    return ""


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_link_made_while_a_file_is_written_is_not_followed(overwrite, tmp_path):
    target, precious = tmp_path / "file", tmp_path / "precious"
    precious.write_bytes(b"precious")
    refused = refusal(target, overwrite, lambda: target.symlink_to(precious))
    assert ("exists already" in refused) == (not overwrite)
    assert target.is_symlink() == (not overwrite)
    assert precious.read_bytes() == b"precious"


def test_files_that_a_link_leads_to_by_turns_are_not_replaced(tmp_path):
    target, others = tmp_path / "file", [tmp_path / f"precious {i}" for i in range(2)]
    for other in others:
        other.write_bytes(b"precious")
    stop = threading.Event()

    def swap() -> None:
        for number in itertools.count():
            if stop.is_set():
                return
            link = tmp_path / "link"
            link.unlink(missing_ok=True)
            link.symlink_to(others[number % 2])
            link.replace(target)

    swapping = threading.Thread(target=swap)
    swapping.start()
    refusals = [refusal(target, overwrite=False) for _ in range(200)]
    stop.set()
    swapping.join()
    assert sum("exists already" in text for text in refusals) >= 199  # the first may come in time
    assert [other.read_bytes() for other in others] == [b"precious"] * 2


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_link_to_itself_is_refused_and_stays(overwrite, tmp_path):
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(FileFaultError, match="loop: Too many levels of symbolic links"):
        write_text(loop, "x", overwrite)
    assert loop.is_symlink()


def test_a_killed_writer_leaves_the_old_file(tmp_path):
    target = tmp_path / "file"
    write_bytes(target, b"old")
    program = (
        "import os, signal\n"
        "from torch_diode.files.atomic import replacing\n"
        f"with replacing({str(target)!r}) as temporary:\n"
        "    temporary.write_bytes(b'half')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", program], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert target.read_bytes() == b"old"
    left = [file.name for file in tmp_path.iterdir() if file != target]
    assert all(name.startswith(".") and name.endswith(".tmp") for name in left)


def test_the_file_has_the_permissions_of_any_new_file(tmp_path):
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "file", "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


def test_a_path_that_cannot_be_written_is_named_and_nothing_is_left(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(FileFaultError, match="file/below"):
        write_bytes(tmp_path / "file" / "below", b"")
    (tmp_path / "taken").mkdir()
    with pytest.raises(FileFaultError, match="taken: got a directory; expected a file"):
        write_bytes(tmp_path / "taken", b"")
    assert {path.name for path in tmp_path.iterdir()} == {"file", "taken"}


def test_a_pipe_is_written_to_and_stays_one(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_text(pipe, "through")
        assert os.read(reader, 100) == b"through"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path):
    (tmp_path / "there").mkdir()
    for name in ("old", "not yet"):
        target, link = tmp_path / "there" / name, tmp_path / f"link to {name}"
        link.symlink_to(target)
        if name == "old":
            target.write_text("old")
        write_text(link, "new")
        assert link.is_symlink()
        assert target.read_text() == "new"


def test_standard_output_is_added_to_and_stays_what_it_was(tmp_path):
    program = (
        "from torch_diode.files.atomic import write_text\n"
        "print('before')\nwrite_text('/dev/stdout', 'written\\n')\nprint('after')\n"
        "write_text('/dev/fd/1', 'again\\n')"
    )
    target = tmp_path / "kept"
    target.write_text("kept\n")
    with target.open("a") as sink:
        subprocess.run([sys.executable, "-c", program], stdout=sink, check=True)
    assert target.read_text().splitlines() == ["kept", "before", "written", "after", "again"]
