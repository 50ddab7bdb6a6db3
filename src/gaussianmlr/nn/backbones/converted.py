"""Backbones whose weights no longer change, run by onnxruntime: a third of torch's CPU time."""

from __future__ import annotations

import copy
import io
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn

from gaussianmlr._utils.threads import threads_in_use
from gaussianmlr.nn.backbones.base import Backbone
from gaussianmlr.nn.backbones.joined import Joined
from gaussianmlr.nn.work import evaluating

__all__ = ["FEWEST", "convert", "hushed"]

FEWEST = 64  # inputs from which the second that the conversion takes is worth it
TOLERANCE = 1e-3
_CHECKED = 4  # inputs that the result is compared on
_AT_ONCE = 2**18  # values per call, about one photograph: a larger batch leaves the processor's cache


class Converted(Backbone):
    """A backbone that onnxruntime runs on inputs of one size; torch runs inputs of any other."""

    def __init__(self, whole: Backbone, session: Any, size: tuple[int, ...]) -> None:
        super().__init__(whole.features, whole.inputs, is_map=whole.is_map)
        # In a tuple, which registers no module: the weights are in the session.
        self._whole, self._session, self._size = (whole,), session, size

    def extract(self, x: Tensor) -> Tensor:
        """Features of inputs that are checked and scaled."""
        if tuple(x.shape[1:]) != self._size or not len(x):
            return self._whole[0].extract(x)
        rows = max(1, _AT_ONCE // x[0].numel())
        return torch.cat([self._run(part) for part in torch.split(x, rows)])

    def _run(self, x: Tensor) -> Tensor:
        return torch.from_numpy(self._session.run(None, {"inputs": x.contiguous().numpy()})[0])


class _Extract(nn.Module):
    def __init__(self, backbone: Backbone) -> None:
        super().__init__()
        self.backbone = backbone

    def forward(self, x: Tensor) -> Tensor:
        return self.backbone.extract(x)


def convert(
    backbone: Backbone,
    inputs: Tensor,
    *,
    threads: int | None = None,
    note: Callable[[str], None] = lambda text: None,
) -> Backbone:
    """The backbone as onnxruntime runs it, checked against torch; the backbone itself where that fails.

    Its features are compared with torch's on the first inputs; where they differ by more than 1e-3 (relative
    to the features where these are above one), torch is used. Without the packages onnx and onnxruntime, on
    a GPU and for tables it is used, too.

    Parameters
    ----------
    backbone : Backbone
        For images, on the CPU. It is not changed, and later changes of its weights have no effect.
    inputs : Tensor [N, channels, height, width]
        Inputs to check the result on; all later ones should have their height and width.
    threads : int, optional
        Threads per call; by default those of torch.
    note : callable
        Told in one line why torch is used, if that can be helped.

    Examples
    --------
    >>> from gaussianmlr.nn import backbones
    >>> backbone = backbones.make("fast", channels=1).eval()
    >>> image = torch.rand(2, 1, 64, 64)
    >>> with torch.no_grad():
    ...     float((convert(backbone, image)(image) - backbone(image)).abs().max()) < 1e-3
    True
    """
    weight = next(backbone.parameters(), None)
    if backbone.inputs.kind != "image" or weight is None or weight.device.type != "cpu":
        return backbone
    if weight.dtype != torch.float32 or not len(inputs):
        return backbone
    if find_spec("onnx") is None or find_spec("onnxruntime") is None:
        note("onnxruntime would compute features in a third of the time: pip install 'gaussianmlr[onnx]'")
        return backbone
    some = inputs[:_CHECKED]
    with evaluating(backbone), torch.no_grad():
        wanted = backbone(some)
        try:
            made = _converted(backbone, some, threads or threads_in_use())
            found = made(some)
        except Exception as error:  # exporter and onnxruntime raise whatever they meet
            first = (str(error).strip().splitlines() or [type(error).__name__])[0]
            note(f"torch computes the features, as onnxruntime cannot: {first[:200]}")
            return backbone
    apart = float(((found - wanted).abs() / wanted.abs().clamp(min=1)).max())
    if not apart <= TOLERANCE:
        note(f"torch computes the features, as onnxruntime's differ by {apart:.2g}")
        return backbone
    return made


def _converted(backbone: Backbone, inputs: Tensor, threads: int) -> Backbone:
    if isinstance(backbone, Joined):
        members = []
        for member in backbone.members:
            assert isinstance(member, Backbone)
            members.append(_converted(member, backbone.for_member(inputs, member), threads))
        return Joined(members, mirror=backbone.mirror).eval()
    import onnxruntime

    ready = backbone._prepared(inputs[:2])
    file = io.BytesIO()
    # A copy, as the exporter changes modes and memory formats. Its older way takes a tenth of the time.
    plain = _Extract(copy.deepcopy(backbone).eval().to(memory_format=torch.contiguous_format))  # type: ignore[call-overload]
    with hushed():
        torch.onnx.export(
            plain,
            (ready.contiguous(),),
            file,  # type: ignore[arg-type]  # a stream will do
            dynamo=False,
            opset_version=18,
            input_names=["inputs"],
            output_names=["features"],
            dynamic_axes={"inputs": {0: "batch"}, "features": {0: "batch"}},
        )
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # idle threads sleep
    session = onnxruntime.InferenceSession(file.getvalue(), options, providers=["CPUExecutionProvider"])
    return Converted(backbone, session, tuple(ready.shape[1:])).eval()


@contextmanager
def hushed() -> Iterator[None]:
    """Silence torch's exporter: what it says of its own parts is of no use to people."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
