"""Pages as they are written, and as a real Chromium shows them, driven over its own pipe."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--disable-extensions", "--hide-scrollbars",
    "--remote-debugging-pipe",
]  # fmt: skip


class Parsed(HTMLParser):
    """The elements of a page with their attributes, and its text."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.comments: list[str] = []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


class Browser:
    """One page of a running Chromium."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._write = os.fdopen(to_browser, "wb")
        self._read = os.fdopen(from_browser, "rb")
        self._number = 0
        self._session: str | None = None
        self._buffer = b""
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Audits"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """The answer to a command of the DevTools protocol."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        self._write.write(json.dumps(message).encode() + b"\0")
        self._write.flush()
        number = self._number
        while True:
            found = self._message()
            if found.get("id") == number:
                assert "error" not in found, f"{method}: {found.get('error')}"
                result: dict[str, Any] = found["result"]
                return result

    def wait_for(self, event: str) -> None:
        """Returns when the event has come since the last `open`."""
        while not any(seen["method"] == event for seen in self.events):
            self._message()

    def open(
        self, path: Path, *, width: int, dark: bool, height: int = 900, media: str = ""
    ) -> None:
        """Loads a file as seen on a screen, or paper, of that width, in light or dark."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self.events.clear()
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.wait_for("Page.loadEventFired")

    def evaluate(self, expression: str) -> Any:
        """The value of JavaScript, which the driver may run though the page may not."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def problems(self) -> list[str]:
        """What the browser complained about, scripts that spoke, and what a network was asked."""
        found = []
        for event in self.events:
            method, params = event["method"], event["params"]
            if method == "Log.entryAdded":
                found.append(str(params["entry"]["text"]))
            elif method in (
                "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Audits.issueAdded",
                "Page.javascriptDialogOpening",
            ):  # fmt: skip
                found.append(f"{method}: {json.dumps(params)[:300]}")
            elif method == "Network.requestWillBeSent":
                url = params["request"]["url"]
                if not url.startswith(("file:", "data:")):
                    found.append(f"asked for {url}")
        return found

    def screenshot(self, path: Path, *, full: bool = True) -> None:
        image = self.call("Page.captureScreenshot", captureBeyondViewport=full)
        path.write_bytes(base64.b64decode(image["data"]))

    def pdf(self, path: Path) -> None:
        printed = self.call("Page.printToPDF", printBackground=False, preferCSSPageSize=True)
        path.write_bytes(base64.b64decode(printed["data"]))

    def close(self) -> None:
        self._session = None
        self.call("Browser.close")
        self._write.close()
        self._read.close()

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            chunk = self._read.read1(1 << 16)
            assert chunk, "Chromium has ended"
            self._buffer += chunk
        text, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        if "method" in message:
            self.events.append(message)
        return message


@contextmanager
def browser() -> Iterator[Browser]:
    """A Chromium with an empty profile, ended with the block."""
    assert CHROMIUM
    for_browser, to_browser = os.pipe()
    from_browser, of_browser = os.pipe()
    # Chromium listens on descriptor 3 and speaks on 4: theirs must not be in the way meanwhile.
    given = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (for_browser, of_browser)]
    for end in (for_browser, of_browser):
        os.close(end)

    def put_in_place() -> None:
        os.dup2(given[0], 3)
        os.dup2(given[1], 4)

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [CHROMIUM, *FLAGS, f"--user-data-dir={profile}"],
            pass_fds=(3, 4),
            preexec_fn=put_in_place,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": profile, "XDG_CONFIG_HOME": profile},
        )
        for end in given:
            os.close(end)
        try:
            opened = Browser(to_browser, from_browser)
            yield opened
            opened.close()
            process.wait(timeout=20)
        finally:
            process.kill()
            process.wait()
