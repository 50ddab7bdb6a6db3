"""Fuzzed order texts, tables, pictures and recipes: read, or refused by one DataError."""

import contextlib
import gzip
import io
import json

import numpy as np

from chaos.children import fuzz
from chaos.mutations import ODD_NUMBERS, ODD_TEXTS, spoil_bytes, spoil_tree
from chaos.rows import Row, WrongError, expect, random_of
from gaussianmlr.errors import DataError
from support.commanding import make_table

# Order texts


def texts(plan):
    """Random order texts: an order or a DataError, and an order's text reads back to the same order."""
    row = Row("texts", "odd order texts", "refused, or text and ranks round trip", plan.count(500_000))
    return fuzz(plan, row, prepare_texts, patience=10)


_PIECES = (*"abcxyz", *">>>===???", '"', '""', "\\", '\\"', " ", "  ", "\t", "\n", "\r", "\0", ",", ";", "|")
_PIECES += ("sky", "sea", "sun", '"a > b"', '"="', "é", "\N{ZERO WIDTH SPACE}", "\N{NO-BREAK SPACE}")
_PIECES += ("\u2028",)
_PIECES += ("\ud800", "\N{SNOWMAN}", "nan", "None", "1", "-1", "=1+1", "> >", "a = a", " > ", " = ")
_PIECES += (" ? ", "\x1f")


def prepare_texts(folder, seed):
    from gaussianmlr import to_ranks
    from gaussianmlr.orders import to_text

    def case(place, _):
        random = random_of(seed, "texts", place)
        pieces = random.choices(_PIECES, k=random.choice((0, 1, 2, 3, 5, 8, 13, 40)))
        if random.random() < 0.5:  # nearly an order
            pieces = [one for piece in pieces for one in (piece, random.choice((">", " > ", "=", " = ")))][
                :-1
            ]
        text = "".join(pieces)
        if random.random() < 0.001:
            text *= 200
        ranks, labels = to_ranks([text])
        if not labels:
            return "read"
        written = to_text(ranks, labels)
        again = to_ranks(written, labels).ranks
        expect((again == ranks).all(), "wrong", f"{text!r} became {written!r}")
        expect(to_text(again, labels) == written, "wrong", f"{written!r} is not stable")
        return "read"

    return case, ()


# Tables

_CELLS = [b"1e308", b"-1e308", b"nan", b"inf", b"1e999", b"0x10", b'"', b'""', b"\0", b"\xff\xfe"]
_CELLS += [b"\xef\xbb\xbf"]
_CELLS += [b",", b"\n", b"\r\n", b"\t", b"sky > sky", b"sea = ", b"ranking", b"split", b"test", b"{"]
_CELLS += [b"}", b"[", b"["]
_CELLS += [b"[" * 3000, b"9" * 5000, b"x" * 300, b"ranker", b"id", b"label:sky", b"null", b'"a": ']
_CELLS += [b"\xc3\x28"]


_TABLES = (".csv", ".tsv", ".csv.gz", ".jsonl", ".parquet")


def tables(plan):
    """Spoiled CSV, TSV, gzip, JSON lines and Parquet files, through `read_table` and `check`."""
    row = Row("tables", "spoiled CSV, TSV, JSONL, gzip, Parquet", "read or refused", plan.count(12_000))
    return fuzz(plan, row, prepare_tables)


def prepare_tables(folder, seed):
    from gaussianmlr.data import check, read_table

    originals = []
    for count in (3, 40):
        frame = make_table(count, seed=count)
        frame.insert(0, "id", [f"row {number}" for number in range(count)])
        grades = frame.drop(columns="ranking")
        for number, label in enumerate(("sea", "sky")):
            grades[f"label:{label}"] = (np.arange(count) + number) % 3
        for one in (frame, grades):
            originals += [(suffix, _table_bytes(one, folder / f"original{suffix}")) for suffix in _TABLES]
    by_suffix = {}
    for suffix, data in originals:
        by_suffix.setdefault(suffix, []).append(data)
        file = folder / f"whole{suffix}"
        file.write_bytes(data)
        read_table(file)  # warm: what is lazily imported is imported before memory is bounded
        check(file)

    (folder / "bomb.csv.gz").write_bytes(_bomb())

    def case(place, escapes):
        random = random_of(seed, "tables", place)
        suffix, data = random.choice(originals)
        file = folder / f"case{suffix if random.random() < 0.95 else random.choice(list(by_suffix))}"
        file.write_bytes(_spoil_table(random, suffix, data, by_suffix[suffix]))
        if random.random() < 0.002:
            file = folder / "bomb.csv.gz"
        with escapes:
            if random.random() < 0.1:
                check(file)
                return "checked"
            found = read_table(file)
        expect(not np.isinf(found.features).any(), "wrong", "infinite features were read")
        return "read"

    return case, ()


def _table_bytes(frame, file):
    if file.suffix == ".parquet":
        frame.to_parquet(file)
    elif file.suffix == ".jsonl":
        frame.to_json(file, orient="records", lines=True)
    else:
        frame.to_csv(file, index=False, sep="\t" if file.suffix == ".tsv" else ",")
    return file.read_bytes()


def _bomb():
    """A table whose only row is one line of 400 MB, in some hundred kB."""
    with gzip.open(stream := io.BytesIO(), "wb", compresslevel=6) as packed:
        packed.write(b"a,b,ranking\n1,2,")
        for _ in range(400):
            packed.write(b"x" * 1_000_000)
    return stream.getvalue()


def _spoil_table(random, suffix, data, others):
    if suffix != ".csv.gz" or random.random() < 0.3:
        return spoil_bytes(random, data, _CELLS, others)
    return gzip.compress(spoil_bytes(random, gzip.decompress(data), _CELLS), 1)


# Pictures

_KINDS = ("JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP", "PPM")
_SUFFIXES = (".jpg", ".png", ".gif", ".bmp", ".tif", ".webp", ".ppm")


def images(plan):
    """Spoiled pictures, bombs, and scripts that are named as pictures."""
    row = Row("images", "spoiled pictures, bombs, EPS named .jpg", "read or refused; nothing started", 0)
    row.planned = plan.count(20_000)
    return fuzz(plan, row, prepare_images)


def prepare_images(folder, seed):
    from PIL import Image

    from apps.serve.test_app import EPS, bomb
    from gaussianmlr.data import read_image
    from gaussianmlr.data.readers.images import decode_image

    noise = np.random.default_rng(0).integers(0, 255, (24, 31, 4), dtype=np.uint8)
    originals = []
    for kind in _KINDS:
        for mode in ("RGB", "L", "RGBA", "P", "1", "CMYK", "I;16"):
            try:
                Image.fromarray(noise, "RGBA").convert("RGB").convert(mode).save(stream := io.BytesIO(), kind)
            except (OSError, ValueError):
                continue  # this format has no such mode
            originals.append(stream.getvalue())
    frames = [Image.fromarray(noise[:, :, number % 4]) for number in range(6)]
    frames[0].save(stream := io.BytesIO(), "GIF", save_all=True, append_images=frames[1:])
    originals.append(stream.getvalue())
    hostile = [EPS + b"showpage\n%%EOF\n", b"%!PS\n(x) print\n", b"<svg xmlns='http://www.w3.org/2000/svg'/>"]
    hostile += [bomb(60_000, 60_000), bomb(0, 1), bomb(1, 2**31 - 1), b"", b"GIF89a\xff\xff\xff\xff"]
    hostile += [b"%PDF-1.4\n"]
    hostile += [b"P6 99999 99999 255 ", b"P6 " + b"9" * 5000 + b" 1 255 "]
    hostile += [b"II*\0\x08\0\0\0\xff\xff" + b"\0" * 99]
    small = 4_000_000  # pixels
    for data in originals:
        with contextlib.suppress(DataError):  # 32 bits have no known range
            decode_image(data)

    def case(place, escapes):
        random = random_of(seed, "images", place)
        if random.random() < 0.05:
            data = random.choice(hostile)
        else:
            data = spoil_bytes(random, random.choice(originals), others=originals)
        if random.random() < 0.5:
            with escapes:
                pixels = decode_image(data, max_pixels=small)
        else:
            file = folder / f"case{random.choice(_SUFFIXES)}"
            file.write_bytes(data)
            with escapes:
                pixels = read_image(file, max_pixels=small)
        expect(
            pixels.size <= 3 * small, "wrong", f"{pixels.shape} pixels were read; expected at most {small}"
        )
        return "read"

    return case, ()


# Recipes


def recipes(plan):
    """Changed recipes, TOML and JSON: read or refused, and what is read survives being written."""
    row = Row("recipes", "changed recipes, TOML and JSON", "refused, or round trip", plan.count(40_000))
    return fuzz(plan, row, prepare_recipes, patience=10)


def prepare_recipes(folder, seed):
    from gaussianmlr.model.recipe import Recipe

    plain = Recipe(method_settings={"balance": "comparisons"}, label_weights={"sky": 2.0})
    toml, fields = plain.to_toml().encode(), plain.to_dict()
    tokens = [b"=", b"[", b"]", b'"', b"'''", b"nan", b"inf", b"-inf", b"1" + b"0" * 400, b"0x7f"]
    tokens += [b"1979-05-27"]
    tokens += [b"[[a]]", b"\xff", b"\0", b"{", b"}", b"." * 50, b"[" * 3000, b"true", b"1e999", b"\n", b"# "]
    values = ["adamw", "muon", "all", "none", "loss", "last", "bf16-mixed", *ODD_NUMBERS, *ODD_TEXTS]

    def case(place, escapes):
        random = random_of(seed, "recipes", place)
        if random.random() < 0.5:
            file, data = folder / "case.toml", spoil_bytes(random, toml, tokens)
        else:
            file = folder / "case.json"
            data = json.dumps(spoil_tree(random, fields, values)).encode("utf-8", errors="surrogatepass")
        file.write_bytes(data)
        with escapes:
            found = Recipe.read(file)
        try:
            written = json.dumps(found.to_dict(), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise WrongError("wrong", f"{found} was read, and cannot be written: {error}") from None
        again = Recipe.from_dict(json.loads(written))
        expect(again == found, "wrong", f"{found} is not what its fields say")
        return "read"

    return case, ()
