"""Pictures of every kind: read as people see them, or refused with their name."""

import os
import re
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader

import gaussianmlr
from gaussianmlr import DataError
from gaussianmlr.data import Augment, Preprocess, RankedData, RankedImages, check, read_image
from gaussianmlr.data.readers.images import FORMATS, decode_image
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.training.defaults import picture_options

RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)
# Two rows, three columns, every pixel different: any turn or flip shows.
PICTURE = np.array([[RED, GREEN, BLUE], [WHITE, (0, 0, 0), (128, 64, 32)]], dtype=np.uint8)


def test_a_plain_picture_comes_back(tmp_path):
    Image.fromarray(PICTURE).save(tmp_path / "a.png")
    pixels = read_image(tmp_path / "a.png")
    assert pixels.dtype == np.uint8
    assert (pixels == PICTURE).all()
    gray = read_image(str(tmp_path / "a.png"), "L")
    luma = PICTURE @ np.array([0.299, 0.587, 0.114])  # ITU-R 601
    assert gray.shape == (2, 3)
    assert np.abs(gray - luma).max() <= 1


# What a camera stores for each EXIF orientation, so that the upright picture is PICTURE.
STORED = {
    1: lambda a: a,
    2: lambda a: a[:, ::-1],
    3: lambda a: a[::-1, ::-1],
    4: lambda a: a[::-1],
    5: lambda a: a.transpose(1, 0, 2),
    6: lambda a: np.rot90(a),
    7: lambda a: a[::-1, ::-1].transpose(1, 0, 2),
    8: lambda a: np.rot90(a, -1),
}


@pytest.mark.parametrize("orientation", STORED)
@pytest.mark.parametrize("kind", ["png", "tiff"])
def test_exif_orientation_is_undone(tmp_path, orientation, kind):
    exif = Image.Exif()
    exif[0x0112] = orientation
    stored = Image.fromarray(np.ascontiguousarray(STORED[orientation](PICTURE)))
    stored.save(tmp_path / f"a.{kind}", exif=exif)
    assert (read_image(tmp_path / f"a.{kind}") == PICTURE).all()


def test_exif_orientation_of_a_jpeg(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    left_red = np.zeros((16, 32, 3), dtype=np.uint8)
    left_red[:, :16] = RED
    Image.fromarray(np.ascontiguousarray(np.rot90(left_red))).save(tmp_path / "a.jpg", exif=exif, quality=95)
    pixels = read_image(tmp_path / "a.jpg")
    assert pixels.shape == (16, 32, 3)
    assert pixels[:, :12, 0].min() > 200
    assert pixels[:, 20:, 0].max() < 60


def test_sixteen_bits_are_scaled_and_not_clipped(tmp_path):
    deep = np.array([[0, 128, 129, 257, 32768, 65535]], dtype=np.uint16)
    expected = [[0, 0, 1, 1, 128, 255]]  # the nearest of v / 257
    for name in ("a.png", "a.tiff"):
        Image.fromarray(deep).save(tmp_path / name)
        assert read_image(tmp_path / name, "L").tolist() == expected
        assert read_image(tmp_path / name)[..., 2].tolist() == expected
    big_endian = struct.pack(">IIBBBBB", 2, 1, 16, 2, 0, 0, 0)  # 16-bit RGB, written by hand
    raw = zlib.compress(b"\0" + struct.pack(">6H", 0, 32768, 65535, 65535, 0, 257))
    (tmp_path / "rgb16.png").write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + b"".join(_chunk(*part) for part in [(b"IHDR", big_endian), (b"IDAT", raw), (b"IEND", b"")])
    )
    assert np.abs(read_image(tmp_path / "rgb16.png").astype(int) - [[[0, 128, 255], [255, 0, 1]]]).max() <= 1


def _chunk(name, content):
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


@pytest.mark.parametrize(("mode", "name"), [("I", "a.tiff"), ("F", "a.tiff")])
def test_pixels_without_a_known_range_are_refused(tmp_path, mode, name):
    Image.new(mode, (2, 2), 1000).save(tmp_path / name)
    with pytest.raises(DataError, match=r"a\.tiff: 32-bit pixels have no known range"):
        read_image(tmp_path / name)


def test_transparent_parts_show_the_background(tmp_path):
    half = Image.new("RGBA", (2, 1), (255, 0, 0, 255))
    half.putpixel((1, 0), (255, 0, 0, 51))  # a fifth of red over white
    half.save(tmp_path / "a.png")
    assert read_image(tmp_path / "a.png").tolist() == [[[255, 0, 0], [255, 204, 204]]]
    assert read_image(tmp_path / "a.png", background=(0, 0, 0)).tolist() == [[[255, 0, 0], [51, 0, 0]]]
    gray = Image.new("LA", (1, 1), (0, 0))
    gray.save(tmp_path / "la.png")
    assert read_image(tmp_path / "la.png").tolist() == [[list(WHITE)]]
    assert read_image(tmp_path / "la.png", "L").tolist() == [[255]]


def test_palettes_with_and_without_transparency(tmp_path):
    palette = Image.new("P", (2, 1))
    palette.putpalette([*RED, *BLUE])
    palette.putpixel((1, 0), 1)
    palette.save(tmp_path / "p.png")
    assert read_image(tmp_path / "p.png").tolist() == [[list(RED), list(BLUE)]]
    palette.save(tmp_path / "t.png", transparency=1)
    assert read_image(tmp_path / "t.png").tolist() == [[list(RED), list(WHITE)]]
    palette.save(tmp_path / "t.gif", transparency=0)
    assert read_image(tmp_path / "t.gif").tolist() == [[list(WHITE), list(BLUE)]]
    Image.new("1", (1, 1), 1).save(tmp_path / "one.png")
    assert read_image(tmp_path / "one.png").tolist() == [[list(WHITE)]]


def test_cmyk(tmp_path):
    for ink, seen in [((0, 255, 255, 0), RED), ((255, 255, 0, 0), BLUE), ((0, 0, 0, 0), WHITE)]:
        Image.new("CMYK", (16, 16), ink).save(tmp_path / "a.jpg", quality=95)
        assert np.abs(read_image(tmp_path / "a.jpg").astype(int) - seen).max() <= 3


def test_of_an_animation_the_first_picture_counts(tmp_path):
    frames = [Image.new("RGB", (4, 4), colour) for colour in (RED, GREEN, BLUE)]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    assert (read_image(tmp_path / "a.gif") == RED).all()


def noise(size=(64, 48)):
    random = np.random.default_rng(0).integers(0, 255, (size[1], size[0], 3), dtype=np.uint8)
    return Image.fromarray(random)


@pytest.mark.parametrize("kind", ["jpg", "png", "webp", "bmp", "tiff", "gif"])
def test_every_kind_reads_whole_and_is_refused_cut(tmp_path, kind):
    file = tmp_path / f"a.{kind}"
    noise().save(file)
    assert read_image(file).shape == (48, 64, 3)
    content = file.read_bytes()
    for kept in (0.5, 0.9):
        file.write_bytes(content[: int(len(content) * kept)])
        with pytest.raises(DataError, match=rf"a\.{kind}: "):
            read_image(file)


def test_damage_inside_a_png_is_seen(tmp_path):
    file = tmp_path / "a.png"
    noise().save(file)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(content)
    with pytest.raises(DataError, match=r"a\.png: damaged or cut off"):
        read_image(file)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.jpg", b"", r"empty\.jpg: is empty \(0 bytes\)"),
        (
            "text.jpg",
            b"not a picture",
            r"text\.jpg: is not a picture; expected PNG, JPEG, GIF, BMP, TIFF, WEBP or PPM",
        ),
        ("page.png", b"<html><body>404</body></html>", r"page\.png: is not a picture"),
        ("none.jpg", None, r"none\.jpg: No such file"),
    ],
)
def test_what_is_no_picture(tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_image(tmp_path / name)


def test_folders_pipes_and_modes(tmp_path):
    with pytest.raises(DataError, match="is a folder; expected a picture"):
        read_image(tmp_path)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.png")
        with pytest.raises(DataError, match="not a regular file"):
            read_image(tmp_path / "pipe.png")
    with pytest.raises(DataError, match="mode is 'RGB' or 'L', not 'CMYK'"):
        read_image(tmp_path / "a.png", "CMYK")


def test_large_pictures_are_refused_before_they_are_unpacked(tmp_path):
    noise().save(tmp_path / "a.png")
    assert read_image(tmp_path / "a.png", max_pixels=64 * 48).shape == (48, 64, 3)
    with pytest.raises(DataError, match=r"a\.png: 64 x 48 pixels; expected at most 3,071 pixels"):
        read_image(tmp_path / "a.png", max_pixels=64 * 48 - 1)


@pytest.mark.parametrize("side", [12_000, 40_000])
def test_a_decompression_bomb_is_refused(tmp_path, side):
    # A valid PNG whose header promises far more than memory should hold, in a few hundred bytes.
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(bytes(100_000))), (b"IEND", b"")]
    (tmp_path / "bomb.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*part) for part in parts))
    with pytest.raises(DataError, match=r"bomb\.png: .*expected at most"):
        read_image(tmp_path / "bomb.png")


def folder_of_pictures(folder, count=6):
    files = []
    for number in range(count):
        files.append(folder / f"{number}.jpg")
        noise((40 + number, 30)).save(files[-1])
    ranks = np.eye(count, 3, dtype=np.int64)
    return RankedData(ranks, ["a", "b", "c"], images=files)


def test_items_without_a_transform_are_the_pixels(tmp_path):
    data = folder_of_pictures(tmp_path)
    images = RankedImages(data)
    image, ranks = images[2]
    assert image.dtype == torch.uint8
    assert (image.permute(1, 2, 0).numpy() == read_image(tmp_path / "2.jpg")).all()
    assert ranks.tolist() == [0, 0, 1]
    assert len(images) == 6
    assert (images[-1][0] == images[5][0]).all()
    assert RankedImages(data, mode="L")[0][0].shape == (1, 30, 40)
    with pytest.raises(IndexError, match="no image 6"):
        images[6]
    with pytest.raises(DataError, match="expected data with images"):
        RankedImages(RankedData([[1, 0]], ["a", "b"]))


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_through_a_loader(tmp_path, workers):
    preprocess = Preprocess(size=(16, 24), channels=1)
    images = RankedImages(folder_of_pictures(tmp_path), preprocess)
    batches = list(DataLoader(images, batch_size=4, num_workers=workers))
    assert [batch[0].shape for batch in batches] == [(4, 1, 16, 24), (2, 1, 16, 24)]
    expected = preprocess(read_image(tmp_path / "5.jpg", "L"))
    assert torch.equal(batches[1][0][1], expected)
    assert torch.equal(torch.cat([batch[1] for batch in batches]), torch.eye(6, 3, dtype=torch.int64))


def test_workers_that_live_on_see_the_epoch_change(tmp_path):
    augment = Augment(Preprocess(size=(16, 16)), seed=3)
    images = RankedImages(folder_of_pictures(tmp_path), augment)
    loader = DataLoader(images, batch_size=6, num_workers=1, persistent_workers=True)
    for epoch in (0, 1, 0):
        images.set_epoch(epoch)
        (batch, _), *_ = list(loader)
        expected = [augment(read_image(tmp_path / f"{i}.jpg"), epoch=epoch, index=i) for i in range(6)]
        assert torch.equal(batch, torch.stack(expected))
    assert images.epoch == 0


def test_a_bad_picture_in_a_worker_is_named(tmp_path):
    data = folder_of_pictures(tmp_path)
    (tmp_path / "3.jpg").write_bytes(b"")
    with pytest.raises(DataError, match=r"3\.jpg: is empty"):
        list(DataLoader(RankedImages(data, Preprocess(size=(8, 8))), num_workers=1))


EPS = b"""%!PS-Adobe-3.0 EPSF-3.0
%%BoundingBox: 0 0 10 10
%%EndComments
10 10 moveto
%%EOF
"""


@pytest.fixture
def ghostscript(tmp_path, monkeypatch):
    """A program `gs` that leaves a mark where it was started."""
    folder, mark = tmp_path / "bin", tmp_path / "started"
    folder.mkdir()
    (folder / "gs").write_text(f"#!/bin/sh\necho gs >> {mark}\n")
    (folder / "gs").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr("PIL.EpsImagePlugin.gs_binary", None)  # looked for once a process
    return mark


def test_postscript_under_the_name_of_a_picture_starts_no_program(tmp_path, ghostscript):
    file = tmp_path / "a.jpg"
    file.write_bytes(EPS)
    with pytest.raises(OSError), Image.open(file) as image:  # what Pillow does of itself
        image.load()
    assert ghostscript.exists()
    ghostscript.unlink()
    expected = r"is not a picture; expected PNG, JPEG, GIF, BMP, TIFF, WEBP or PPM"
    with pytest.raises(DataError, match=rf"a\.jpg: {expected}"):
        read_image(file)
    with pytest.raises(DataError, match=rf"b\.jpg: {expected}"):
        decode_image(EPS, name="b.jpg")
    (tmp_path / "manifest.csv").write_text("image,ranking\na.jpg,sky\n")
    report = check(tmp_path / "manifest.csv")
    assert [problem.message for problem in report.errors] == [expected]
    data = RankedData([[2, 1]], ["sky", "sea"], images=[file])
    assert picture_options(data, Recipe(), 8)["channels"] == 3
    assert not ghostscript.exists()


@pytest.mark.parametrize("kind", ["ICO", "TGA", "PDF", "SGI", "PCX", "XBM", "MSP", "DDS"])
def test_other_formats_are_refused_under_any_name(tmp_path, kind):
    picture = Image.fromarray(PICTURE).resize((32, 32))
    picture.convert("1" if kind in ("XBM", "MSP") else "RGB").save(tmp_path / "a.png", kind)
    with pytest.raises(DataError, match=r"a\.png: is not a picture; expected PNG"):
        read_image(tmp_path / "a.png")


@pytest.mark.parametrize("kind", FORMATS)
def test_the_formats_named_are_read_under_any_name(tmp_path, kind):
    Image.fromarray(PICTURE).save(tmp_path / "a.xyz", kind)
    assert read_image(tmp_path / "a.xyz").shape == PICTURE.shape


def test_every_picture_is_opened_by_a_list_of_formats():
    for file in Path(gaussianmlr.__file__).parent.rglob("*.py"):
        code = re.sub(r"^\s*(>>>|\.\.\.) .*$", "", file.read_text("utf-8"), flags=re.MULTILINE)
        for call in re.findall(r"Image\.open\(.*", code):
            assert "formats=" in call, f"{file}: {call}"
