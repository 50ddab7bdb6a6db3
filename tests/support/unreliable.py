"""A real HTTP server that does what real servers do: cut, stall, lie, and sometimes serve."""

from __future__ import annotations

import contextlib
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Unreliable(ThreadingHTTPServer):
    """Serves `content[path]`; each request takes the next word of `script`, then `honest`."""

    daemon_threads = True

    def __init__(self, content, script=(), ranges=True):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.content = dict(content)
        self.script = list(script)
        self.always = "honest"
        self.ranges = ranges
        self.requests = []
        self.sent = 0
        self.asleep = 0  # answers that stall at this moment
        self.closing = threading.Event()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/"

    def handle_error(self, request, client_address):
        """Clients hang up on stalled answers: that is the point."""


@contextlib.contextmanager
def serving(content, script=(), *, ranges=True, always="honest"):
    server = Unreliable(content, script, ranges)
    server.always = always
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        asked = self.headers.get("Range")
        server.requests.append((self.path, asked))
        mood = server.script.pop(0) if server.script else server.always
        if self.path not in server.content:
            return self.send_error(404)
        if mood.isdigit():
            return self.send_error(int(mood))
        data = server.content[self.path]
        if mood == "lie":
            data = bytes(byte ^ 0x55 for byte in data)
        if mood == "endless":
            data = data + b"more" * 1000
        first = 0
        if asked and server.ranges:
            first = int(asked.removeprefix("bytes=").split("-")[0])
            if mood == "other-range":
                first = max(0, first - 7)
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{len(data) - 1}/{len(data)}")
        else:
            self.send_response(200)
        body = data[first:]
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if mood == "cut":
            self._send(body[: len(body) // 2])
        elif mood == "stall":
            self._send(body[: len(body) // 2])
            server.asleep += 1
            if not server.closing.wait(60):
                server.asleep -= 1
        elif mood == "drip":
            for byte in body:
                self._send(bytes([byte]))
                time.sleep(0.02)
        else:
            self._send(body)
        return None

    def _send(self, data):
        # Counted first: the client may look as soon as it has the last byte.
        self.server.sent += len(data)
        self.wfile.write(data)
        self.wfile.flush()

    def log_message(self, *_):
        """Quiet."""
