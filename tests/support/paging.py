"""What tests of pages share: a server in a process of its own, and a real browser."""

import asyncio
import contextlib
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from urllib.request import urlopen

import httpx
import pytest

# Without PYTHONUNBUFFERED, as users run it: an address that stays in a buffer must fail here too.
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
ENVIRONMENT.pop("PYTHONUNBUFFERED", None)
PATIENCE = 240  # seconds until a server that says nothing is given up


class Running:
    """A server under test: its address, and its process."""

    def __init__(self, process, url):
        self.process, self.url = process, url

    def stop(self, how=signal.SIGTERM):
        """Ask it to end, and give its exit code and what it said on standard error."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        _, errors = self.process.communicate(timeout=60)
        return self.process.returncode, errors


@contextlib.contextmanager
def running(*arguments):
    """`python ARGUMENTS`, once it has printed its address."""
    process = subprocess.Popen(
        [sys.executable, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    watchdog = threading.Timer(PATIENCE, process.kill)
    watchdog.start()
    try:
        for line in process.stdout:
            if found := re.search(r"http://\S+/", line):
                break
        else:
            raise AssertionError(f"no address: {process.communicate(timeout=60)[1]}")
        watchdog.cancel()
        yield Running(process, found.group().rstrip("/"))
    finally:
        watchdog.cancel()
        if process.poll() is None:
            process.kill()
        process.communicate()


def digit_model(channels=1, side=112, method="gmlr", labels="0123456789"):
    """An untrained model of digits on a canvas."""
    import torch

    from gaussianmlr.data.open import image_inputs
    from gaussianmlr.model.model import Model, build
    from gaussianmlr.model.recipe import Recipe

    torch.manual_seed(3)
    inputs = image_inputs(side, channels)
    recipe = Recipe(method=method, backbone="fast")
    return Model(*build(recipe, 10, inputs), tuple(labels), recipe, inputs)


def pixels_of(source):
    """The pixels of an image in a data URI."""
    import numpy as np
    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(urlopen(source).read())))


def ask_app(app, *requests):
    """Ask an application without a server between; a request is a path, and JSON or bytes to send."""

    async def ask():
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client,
        ):
            found = []
            for path, *body in requests:
                if not body:
                    found.append(await client.get(path))
                elif isinstance(body[0], bytes):
                    found.append(await client.post(path, content=body[0]))
                else:
                    found.append(await client.post(path, json=body[0]))
            return found

    return asyncio.run(ask())


@contextlib.contextmanager
def browser():
    """A headless Chromium of this machine."""
    executable = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if executable is None:
        pytest.skip("no Chromium on this machine")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        try:
            yield chromium
        finally:
            chromium.close()
