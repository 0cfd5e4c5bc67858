# SPDX-License-Identifier: BSD-2-Clause
"""Drives headless Chromium through chromedriver's HTTP protocol (W3C WebDriver)."""
import json
import os
import pathlib
import re
import subprocess
import time
import urllib.request


class Browser:
    """One browser with one window; a context manager that ends both programs. What they leave behind
    is in `folder`."""

    def __init__(self, folder):
        self.folder = folder

    def __enter__(self):
        self.driver = subprocess.Popen(
            ["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env=dict(os.environ, TMPDIR=str(self.folder), HOME=str(self.folder)))
        for line in self.driver.stdout:
            found = re.search(r"successfully on port (\d+)", line)
            if found:
                self.base = f"http://127.0.0.1:{found[1]}/session"
                break
        else:
            raise RuntimeError("chromedriver did not start")
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--window-size=1400,900"]
        options = {"browserName": "chrome", "goog:chromeOptions": {"args": arguments}}
        value = self.post("", {"capabilities": {"alwaysMatch": options}})
        self.base += "/" + value["sessionId"]
        return self

    def __exit__(self, *_):
        try:
            self.request("DELETE", "", None)
        finally:
            self.driver.terminate()
            self.driver.wait(10)
            self.wait_for_browser()

    def wait_for_browser(self):
        """Until the last process of Chromium is gone, which would still write to the folder."""
        mark = f"TMPDIR={self.folder}".encode()
        for _ in range(300):
            left = 0
            for environment in pathlib.Path("/proc").glob("[0-9]*/environ"):
                try:
                    left += environment.parent.name != str(os.getpid()) and \
                        mark in environment.read_bytes().split(b"\0")
                except OSError:
                    pass  # gone, or not ours
            if not left:
                return
            time.sleep(0.1)

    def request(self, method, path, body):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"},
                                         method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def post(self, path, body):
        return self.request("POST", path, body)

    def open(self, url):
        self.post("/url", {"url": "about:blank"})  # a new fragment alone would not load anew
        self.post("/url", {"url": url})

    def js(self, text, *args):
        return self.post("/execute/sync", {"script": text, "args": list(args)})

    def devtools(self, command, **params):
        return self.post("/goog/cdp/execute", {"cmd": command, "params": params})

    def size(self, width, height):
        """Size of the page in px, without the window's frame."""
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height,
                      deviceScaleFactor=1, mobile=False)

    def pointer(self, x, y, click=False):
        actions = [{"type": "pointerMove", "x": int(x), "y": int(y), "duration": 0}]
        if click:
            actions += [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        self.post("/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": actions}]})

    def keys(self, text):
        actions = []
        for key in text:
            actions += [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        self.post("/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})
