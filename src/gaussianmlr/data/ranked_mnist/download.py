"""Downloads a known file over HTTP, with retries, resuming, time limits and a checksum."""

from __future__ import annotations

import http.client
import socket
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from gaussianmlr._utils.progress import progress
from gaussianmlr._version import __version__
from gaussianmlr.data.ranked_mnist.idx import md5
from gaussianmlr.errors import DataError

_CHUNK = 1 << 16


@dataclass(frozen=True)
class Patience:
    """How long to wait for a server, and how often to retry.

    Parameters
    ----------
    timeout : float
        Seconds without an answer, or without a further byte, before an attempt is given up.
    retries : int
        Number of further attempts.
    backoff : float
        Seconds before the first further attempt; doubled each time.
    slowest : float
        Bytes per second, on average over an attempt, below which a server counts as stalled.

    Examples
    --------
    >>> Patience(retries=0).timeout
    10.0
    """

    timeout: float = 10.0
    retries: int = 3
    backoff: float = 0.5
    slowest: float = 1024.0


class _RefusedError(Exception):
    """A final answer of the server, for which a retry is useless."""


def fetch(
    url: str,
    part: Path,
    *,
    size: int,
    digest: str,
    patience: Patience | None = None,
    shown: bool = False,
) -> bytes:
    """Download a file of known size and MD5 sum.

    What has arrived is kept in `part`, so that the next attempt, also of a later process, asks only for the
    rest where the server can send a range. `part` is gone once the file was whole or wrong.

    Parameters
    ----------
    url : str
        Where the file is.
    part : pathlib.Path
        Where to keep what has arrived.
    size : int
        How many bytes the file has.
    digest : str
        Its MD5 sum.
    patience : Patience, optional
        Time limits and retries.
    shown : bool
        Whether to draw a progress bar.

    Returns
    -------
    bytes
        The verified content.

    Raises
    ------
    DataError
        When no attempt gave the right bytes, with the reason of the last one.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fetch("http://127.0.0.1:9/x", Path(folder) / "x", size=1, digest="", patience=Patience(retries=0))
    Traceback (most recent call last):
    gaussianmlr.errors.DataError: http://127.0.0.1:9/x: Connection refused
    """
    patience = patience or Patience()
    reason = ""
    part.parent.mkdir(parents=True, exist_ok=True)
    for attempt in range(patience.retries + 1):
        if attempt:
            time.sleep(patience.backoff * 2 ** (attempt - 1))
        try:
            resumed = _attempt(url, part, size, patience, shown)
        except _RefusedError as error:
            part.unlink(missing_ok=True)
            raise DataError(f"{url}: {error}") from error
        except (OSError, http.client.HTTPException) as error:
            reason = _plainly(error)
            if isinstance(getattr(error, "reason", None), OSError) and _is_unknown_host(error):
                break
            continue
        arrived = part.stat().st_size
        if arrived < size:
            reason = f"the connection ended after {arrived:,} of {size:,} bytes"
            continue
        data = part.read_bytes()
        part.unlink()
        found = md5(data)
        if found == digest:
            return data
        reason = f"wrong content: MD5 {found}, expected {digest}"
        if not resumed:  # parts of two servers may differ; a whole file of one server is final
            break
    raise DataError(f"{url}: {reason}")


def _attempt(url: str, part: Path, size: int, patience: Patience, shown: bool) -> bool:
    """Append to `part` what the server sends; say whether it continued an earlier piece."""
    have = part.stat().st_size if part.exists() else 0
    if have >= size:
        part.unlink()
        have = 0
    request = urllib.request.Request(url, headers={"User-Agent": f"gaussianmlr/{__version__}"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        response = urllib.request.urlopen(request, timeout=patience.timeout)
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 416:  # unknown range: start again
                part.unlink(missing_ok=True)
                raise OSError("the server refused to resume") from None
            if error.code < 500 and error.code not in (408, 429):
                raise _RefusedError(f"the server answered {error.code} {error.reason}") from None
            raise OSError(f"the server answered {error.code} {error.reason}") from None
    with response:
        resumed = response.status == 206 and _range_start(response) == have and have > 0
        if response.status == 206 and not resumed:
            part.unlink(missing_ok=True)
            raise OSError("the server sent another range than the one asked for")
        arrived = have if resumed else 0
        label = urlsplit(url).path.rsplit("/", 1)[-1]
        started = time.monotonic()
        with (
            part.open("ab" if resumed else "wb") as file,
            progress(label, size, shown=shown, in_bytes=True) as advance,
        ):
            advance(arrived)
            began_at = arrived
            while chunk := response.read1(_CHUNK):
                arrived += len(chunk)
                if arrived > size:
                    raise _RefusedError(f"wrong content: more than the {size:,} bytes expected")
                file.write(chunk)
                advance(len(chunk))
                spent = time.monotonic() - started
                if spent > patience.timeout and (arrived - began_at) / spent < patience.slowest:
                    raise TimeoutError(f"stalled: {arrived - began_at:,} bytes in {spent:.0f} s")
    return resumed


def _range_start(response: http.client.HTTPResponse) -> int:
    """The first byte of a partial answer: `bytes 100-199/200` starts at 100."""
    value = response.headers.get("Content-Range", "").removeprefix("bytes").strip()
    start = value.split("-", 1)[0]
    return int(start) if start.isdigit() else -1


def _is_unknown_host(error: Exception) -> bool:
    """Whether the host cannot be resolved or reached, so that a retry is useless."""
    return isinstance(getattr(error, "reason", None), socket.gaierror)


def _plainly(error: Exception) -> str:
    """What happened, without class names and numbers."""
    cause = getattr(error, "reason", error)
    if isinstance(cause, TimeoutError):
        return str(cause) if str(cause).startswith("stalled") else "no answer in time"
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror
    return str(cause) or type(cause).__name__
