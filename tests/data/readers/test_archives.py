"""Archives: unpacked once, whole or not at all, and never outside their folder."""

import io
import os
import tarfile
import zipfile

import pytest

from gaussianmlr import DataError
from gaussianmlr._utils.cache import cache_folder
from gaussianmlr.data.readers.archives import find_file, folder_of


def make(path, files):
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                archive.writestr(name, content)
    else:
        with tarfile.open(path, "w:gz" if path.suffix in (".gz", ".tgz") else "w") as archive:
            for name, content in files.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
    return path


def left_over():
    return [path for path in cache_folder("archives").rglob("*") if path.is_file()]


@pytest.mark.parametrize("name", ["a.zip", "a.tar", "a.tar.gz", "a.tgz"])
def test_archives_are_unpacked_once(tmp_path, name):
    archive = make(tmp_path / name, {"set/x.txt": b"one", "set/deep/y.txt": b"two"})
    folder = folder_of(archive)
    assert (folder / "set" / "x.txt").read_bytes() == b"one"
    assert find_file(folder, "y.txt") == folder / "set" / "deep" / "y.txt"
    (folder / "mark").touch()
    assert (folder_of(archive) / "mark").exists()
    assert folder_of(tmp_path) == tmp_path


@pytest.mark.parametrize("kind", ["zip", "tar"])
@pytest.mark.parametrize(
    "name", ["../evil.txt", "/evil.txt", "a/../../evil.txt", "..\\evil.txt", "C:evil.txt"]
)
def test_no_way_out(tmp_path, kind, name):
    archive = make(tmp_path / f"a.{kind}", {"good.txt": b"x", name: b"evil"})
    with pytest.raises(DataError, match="leads out of the archive"):
        folder_of(archive)
    assert left_over() == []
    assert not list(tmp_path.parent.glob("evil*"))


def test_links_are_refused(tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        entry = tarfile.TarInfo("link")
        entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(entry)
    with pytest.raises(DataError, match="'link' is a link or device"):
        folder_of(tmp_path / "a.tar")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        entry = zipfile.ZipInfo("link")
        entry.external_attr = 0o120777 << 16
        archive.writestr(entry, "/etc/passwd")
    with pytest.raises(DataError, match="'link' is a link"):
        folder_of(tmp_path / "a.zip")


def test_bombs_are_stopped_by_what_they_write(tmp_path):
    bomb = make(tmp_path / "a.zip", {"zeros": bytes(5_000_000)})
    assert bomb.stat().st_size < 10_000
    with pytest.raises(DataError, match="too many bytes"):
        folder_of(bomb, max_bytes=1_000_000)
    crowd = make(tmp_path / "b.tar", {str(number): b"" for number in range(20)})
    with pytest.raises(DataError, match="too many files"):
        folder_of(crowd, max_files=10)
    assert left_over() == []
    assert (folder_of(bomb) / "zeros").stat().st_size == 5_000_000


@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz"])
def test_cut_archives_leave_nothing_behind(tmp_path, name):
    archive = make(tmp_path / name, {"x": os.urandom(100_000), "y": os.urandom(100_000)})
    content = archive.read_bytes()
    archive.write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match="damaged or cut off"):
        folder_of(archive)
    assert left_over() == []
    damaged = bytearray(content)
    damaged[len(content) // 3] ^= 0xFF
    archive.write_bytes(damaged)
    if name == "a.zip":  # zip keeps a sum of every file
        with pytest.raises(DataError, match="damaged or cut off"):
            folder_of(archive)


def test_what_is_no_archive(tmp_path):
    (tmp_path / "a.zip").write_bytes(b"not a zip")
    (tmp_path / "a.rar").write_bytes(b"Rar!")
    with pytest.raises(DataError, match="damaged or cut off"):
        folder_of(tmp_path / "a.zip")
    with pytest.raises(DataError, match="expected a folder or an archive"):
        folder_of(tmp_path / "a.rar")
    with pytest.raises(DataError, match="does not exist"):
        folder_of(tmp_path / "none.zip")
