"""What machines exchange comes out as it went in, and bytes of a pickle run nothing."""

import ast
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

import gaussianmlr
from gaussianmlr import DataError
from gaussianmlr.inference.parcels import Parcel, pack, unpack
from gaussianmlr.inference.predict import Answer, Predictions
from gaussianmlr.inference.streams import Bad, Item, Unread


def sent(value):
    return unpack(pack(value))


def test_batches():
    odd = "odd \udcff\n'name"  # a file name that is no UTF-8
    batch = [
        Item("one", torch.tensor([1.0, -0.0, 1e-40])),
        Unread(odd, Path("/photos") / odd),
        Bad("two", 'is "odd"'),
        Item("three", torch.tensor([float("inf"), float("nan"), 3.0])),
    ]
    found = sent(batch)
    assert [type(one) for one in found] == [type(one) for one in batch]
    for one, other in zip(found, batch):
        if isinstance(other, Item):
            assert one.name == other.name
            assert torch.equal(one.value.view(torch.int32), other.value.view(torch.int32))  # every bit
        else:
            assert one == other
    assert sent([]) == []


@pytest.mark.parametrize("partial", [None, ["a ? b", ""]])
def test_answers(partial):
    values = {
        "significance": np.array([[1.5, -2], [0, 1]], np.float32),
        "a key": np.zeros((2, 2), np.float32),
    }
    for table in values.values():
        table.setflags(write=False)  # as those of a prediction are
    predictions = Predictions(["x", "y"], ["a > b", "b"], partial, np.array([[2, 1], [0, 1]]), values)
    found = sent(Answer([Bad("z", "why")], predictions))
    assert found.bad == [Bad("z", "why")]
    assert (found.predictions.names, found.predictions.orders) == (["x", "y"], ["a > b", "b"])
    assert found.predictions.partial == partial
    assert list(found.predictions.values) == list(values)  # the order of columns
    for key, table in {**values, "ranks": predictions.ranks}.items():
        other = found.predictions.ranks if key == "ranks" else found.predictions.values[key]
        assert other.dtype == table.dtype
        assert np.array_equal(other, table)
    assert sent(Answer([], None)) == Answer([], None)


def test_errors():
    with pytest.raises(FileNotFoundError) as missing:
        Path("/nowhere at all").read_bytes()
    for error in (DataError("row 3: 'x'"), missing.value, OSError("cannot identify image")):
        found = sent(error)
        assert type(found) is type(error)
        assert str(found) == str(error)


class Evil:
    """Leaves a file where a pickle of it is read."""

    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return Path.touch, (self.file,)


def test_bytes_of_a_pickle_run_nothing(tmp_path):
    file = tmp_path / "owned"
    harmful = pickle.dumps(Evil(file))
    good = pack([Item("one", torch.zeros(2))])
    for parcel in (
        Parcel(good.text, harmful),
        Parcel(harmful.decode("latin-1"), good.tensors),
        Parcel('{"batch": [["Item", "one"], ["Item", "two"]]}', good.tensors),
        Parcel('{"batch": [["Bad"]]}', good.tensors),
        Parcel("7", good.tensors),
    ):
        with pytest.raises(DataError, match="unknown form"):
            unpack(parcel)
    assert not file.exists()
    pickle.loads(harmful)
    assert file.exists()  # it would have run


def test_the_package_reads_no_pickle():
    """`torch.load` of weights has `weights_only`; nothing else could run what a file or a peer says."""
    for file in Path(gaussianmlr.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                called = ast.unparse(node.func)
                assert called not in ("pickle.loads", "pickle.load", "cloudpickle.loads", "joblib.load"), file
                if called in ("torch.load", "np.load"):
                    safe = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
                    wanted = ("weights_only", "True") if called == "torch.load" else ("allow_pickle", "False")
                    assert safe.get(wanted[0]) == wanted[1], f"{file}:{node.lineno}"
