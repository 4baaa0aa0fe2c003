"""A headless Chromium, driven over the WebDriver protocol with Python's own library. Every wait is bounded."""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-default-apps",
    "--hide-scrollbars",
    "--force-device-scale-factor=1",
]
LIMIT_S = 600


def missing() -> str:
    """What is not here; empty where all is."""
    absent = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    return f"no {' and no '.join(absent)} on this machine" if absent else ""


def axe_source() -> str:
    """The script of axe-core: $AXE_CORE, or downloaded by npm; empty where neither is there."""
    given = os.environ.get("AXE_CORE", "")
    if given:
        return Path(given).read_text()
    if shutil.which("npm") is None:
        return ""
    with tempfile.TemporaryDirectory(prefix="diapason-axe-") as folder:
        try:
            done = subprocess.run(["npm", "pack", "axe-core@4", "--silent", "--fetch-retries=0", "--fetch-timeout=20000"], cwd=folder, capture_output=True, timeout=120)
        except subprocess.TimeoutExpired:
            return ""
        packs = list(Path(folder).glob("*.tgz"))
        if done.returncode != 0 or not packs:
            return ""
        with tarfile.open(packs[0]) as pack:
            file = pack.extractfile("package/axe.min.js")
            return file.read().decode() if file else ""


class Browser:
    """`with Browser(dark=False) as page: page.open(path)`."""

    def __init__(self, width: int = 1366, height: int = 900, dark: bool = False):
        self.size = (width, height)
        self.dark = dark
        self.folder = Path(tempfile.mkdtemp(prefix="diapason-report-"))
        self.downloads = self.folder / "downloads"
        self.downloads.mkdir()
        self.driver = None
        self.session = ""

    def __enter__(self) -> "Browser":
        try:
            self._start()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *ignored) -> None:
        self._stop()

    def _start(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.address = f"http://127.0.0.1:{port}"
        # A group of its own, so that nothing of it is left behind.
        self.driver = subprocess.Popen(
            ["chromedriver", f"--port={port}", "--log-level=OFF"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        end = time.monotonic() + LIMIT_S
        while True:
            try:
                if self._ask("GET", "/status")["ready"]:
                    break
            except (urllib.error.URLError, ConnectionError):
                pass
            if time.monotonic() > end or self.driver.poll() is not None:
                raise RuntimeError("chromedriver does not answer")
            time.sleep(0.05)
        options = {
            "binary": shutil.which("chromium"),
            "args": FLAGS + [f"--user-data-dir={self.folder / 'profile'}", f"--window-size={self.size[0]},{self.size[1]}"],
            "prefs": {"download.default_directory": str(self.downloads), "download.prompt_for_download": False},
        }
        wanted = {"alwaysMatch": {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}, "timeouts": {"script": 600000, "pageLoad": 600000}}}
        self.session = self._ask("POST", "/session", {"capabilities": wanted})["sessionId"]
        self.resize(*self.size)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if self.dark else "light"}]
        self.cdp("Emulation.setEmulatedMedia", features=scheme)

    def _stop(self) -> None:
        if self.session:
            try:
                self._ask("DELETE", f"/session/{self.session}")
            except (urllib.error.URLError, OSError, RuntimeError):
                pass
        if self.driver is not None:
            try:
                os.killpg(self.driver.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.driver.wait(timeout=600)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _ask(self, method: str, path: str, body: dict | None = None):
        data = None if method == "GET" else json.dumps(body or {}).encode()
        request = urllib.request.Request(self.address + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=LIMIT_S) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            value = json.load(error)["value"]
            raise RuntimeError(f"{value.get('error')}: {value.get('message')}") from None

    def _call(self, method: str, path: str, body: dict | None = None):
        return self._ask(method, f"/session/{self.session}{path}", body)

    def cdp(self, command: str, **parameters):
        return self._call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def resize(self, width: int, height: int) -> None:
        """The page's own width, which windows of a desktop never get as narrow as a phone's."""
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def open(self, path: Path) -> None:
        self._call("POST", "/url", {"url": Path(path).resolve().as_uri()})

    def js(self, script: str, *arguments):
        return self._call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def wait_for(self, expression: str):
        """What a promise becomes."""
        script = f"const done = arguments[arguments.length - 1]; ({expression}).then(done, (error) => done({{ error: String(error) }}));"
        return self._call("POST", "/execute/async", {"script": script, "args": []})

    def settle(self) -> None:
        """Until what was asked for is drawn: two frames."""
        script = "const done = arguments[arguments.length - 1]; requestAnimationFrame(() => requestAnimationFrame(() => done(1)));"
        self._call("POST", "/execute/async", {"script": script, "args": []})

    def hover(self, x: float, y: float) -> None:
        self.cdp("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        self.settle()

    def click(self, x: float, y: float) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            self.cdp("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        self.settle()

    def key(self, name: str, code: int) -> None:
        for kind in ("keyDown", "keyUp"):
            self.cdp("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=code)
        self.settle()

    def console(self) -> list[str]:
        """What the page complained about since the last call."""
        return [entry["message"] for entry in self._call("POST", "/se/log", {"type": "browser"}) if entry["level"] in ("SEVERE", "WARNING")]

    def screenshot(self, path: Path) -> None:
        Path(path).write_bytes(base64.b64decode(self._call("GET", "/screenshot")))

    def whole_screenshot(self, path: Path, top: float, height: float) -> None:
        clip = {"x": 0, "y": top, "width": self.js("return innerWidth"), "height": height, "scale": 1}
        data = self.cdp("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"]
        Path(path).write_bytes(base64.b64decode(data))
