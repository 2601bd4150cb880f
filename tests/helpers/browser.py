"""A real browser for pages: Chromium without a window, spoken to over its debugging pipe."""

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
QUIET = (
    "--headless=new",
    "--no-sandbox",  # as root there is none
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--hide-scrollbars",
)
PATIENCE = 60  # seconds for one answer of a browser on a busy machine
LAUNCH = "import os, sys; a, b, *line = sys.argv[1:]; os.dup2(int(a), 3); os.dup2(int(b), 4); os.execvp(line[0], line)"


def find_browser():
    """Path of a browser on PATH; None if there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One page in one browser; what it logged and what it asked for is kept."""

    def __init__(self, program, profile):
        self.log, self.requests, self._last, self._rest = [], [], 0, b""
        theirs_in, self._to = _high(os.pipe())
        self._from, theirs_out = _high(os.pipe())

        line = [program, *QUIET, f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"]
        self._process = subprocess.Popen(  # a browser reads its commands at 3 and answers at 4
            [sys.executable, "-IS", "-c", LAUNCH, str(theirs_in), str(theirs_out), *line],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(theirs_in, theirs_out),
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._session = None
        target = self("Target.createTarget", url="about:blank")["targetId"]
        self._session = self("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self._session = None
            self._send("Browser.close")
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._to)
        os.close(self._from)

    def __call__(self, method, **parameters):
        """One command, with its answer."""
        number = self._send(method, **parameters)
        while True:
            message = self._receive()
            if message.get("id") == number:
                assert "error" not in message, message
                return message["result"]

    def show(self, path, *, width, height=900, dark=False, phone=False, folded=False):
        """Open a file on a screen of this size, with what it has folded."""
        self.log, self.requests = [], []
        self("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self("Emulation.setEmulatedMedia", features=[scheme])
        answer = self("Page.navigate", url=path.as_uri())
        assert "errorText" not in answer, answer
        deadline = time.monotonic() + PATIENCE
        while self.value("document.readyState + location.href") != f"complete{path.as_uri()}":
            assert time.monotonic() < deadline, "the page does not load"
            time.sleep(0.01)
        if not folded:
            self.value("[...document.querySelectorAll('input.behind')].map(box => (box.checked = true)).length")

    def value(self, expression):
        """What a JavaScript expression is on the page."""
        return self("Runtime.evaluate", expression=expression, returnByValue=True)["result"]["value"]

    def picture(self):
        """What is on the screen, as a PNG."""
        return base64.b64decode(self("Page.captureScreenshot", optimizeForSpeed=True)["data"])

    def pdf(self):
        """The page on paper."""
        return base64.b64decode(self("Page.printToPDF", preferCSSPageSize=True)["data"])

    def _send(self, method, **parameters):
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        return self._last

    def _receive(self):
        deadline = time.monotonic() + PATIENCE
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._from], [], [], max(0.0, deadline - time.monotonic()))
            got = os.read(self._from, 1 << 20) if ready else b""
            assert got, "the browser does not answer"
            self._rest += got
        line, self._rest = self._rest.split(b"\0", 1)
        message = json.loads(line)
        if message.get("method") in ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown"):
            self.log.append(message["params"])
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(message["params"]["request"]["url"])
        return message


def _high(ends):
    """The same pipe at numbers that nobody else uses."""
    moved = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    return moved
