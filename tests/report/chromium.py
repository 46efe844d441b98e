# SPDX-License-Identifier: Apache-2.0
"""Opens a report in Chromium and looks: no console message, no request to anywhere, every mark of
its JSON drawn where it can be seen, nothing wider than a phone; the same without scripts. Then it
uses the page as a reader does, with mouse, keys and fingers (explore.py).

chromium.py REPORT.html REPORT.json [SCREENSHOT_FOLDER]

Speaks the DevTools protocol over --remote-debugging-pipe with the standard library alone."""
import base64
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import explore
import page

SIZES = {"light": (1180, 900, "light"), "dark": (1180, 900, "dark"), "phone": (390, 844, "light"),
         "phone-dark": (390, 844, "dark")}
CHARTS = ("recall", "ranks", "spectrum", "plane", "heat")

# What the page says about itself: marks by class, the charts with their sizes, what sticks out.
LOOK = """
(() => {
  const width = document.documentElement.clientWidth, wide = [];
  for (const e of document.querySelectorAll('body *')) {
    const box = e.getBoundingClientRect();
    if (!e.closest('.scroll, svg') && box.right > width + 0.5) wide.push(e.tagName + '.' + e.className);
  }
  const outside = [...document.querySelectorAll('.bar, .rank-bar, .point, .cell, .spectrum-point, .curve-point')]
    .filter(e => { const a = e.getBoundingClientRect(), b = e.ownerSVGElement.getBoundingClientRect();
                   return a.left < b.left - 8 || a.right > b.right + 8 || a.top < b.top - 8 || a.bottom > b.bottom + 8; });
  const cramped = [...document.querySelectorAll('button, .times')].filter(e => e.scrollHeight > e.clientHeight + 1 &&
    e.clientHeight > 0 || e.matches('.times') && e.getBoundingClientRect().height > 36);
  const texts = [...document.querySelectorAll('svg.chart text')].filter(e => e.getBoundingClientRect().left < -0.5 ||
    e.getBoundingClientRect().right > width + 0.5);
  return JSON.stringify({
    scroll: document.documentElement.scrollWidth - width, wide, outside: outside.length,
    texts: texts.map(e => e.textContent), cramped: cramped.map(e => e.textContent),
    count: Object.fromEntries(NAMES.map(n => [n, document.getElementsByClassName(n).length])),
    charts: [...document.querySelectorAll('svg.chart')].map(e => { const b = e.getBoundingClientRect();
      return [e.getAttribute('class'), b.width, b.height]; }),
    ink: getComputedStyle(document.body).color, page: getComputedStyle(document.body).backgroundColor,
    height: document.documentElement.scrollHeight,
    focusable: document.querySelectorAll('a[href], summary, [tabindex="0"]').length,
  });
})()
"""


class Browser:
    """One headless Chromium with one page; messages go through a pair of pipes."""

    def __init__(self, folder):
        name = next((n for n in ("chromium", "chromium-browser", "google-chrome") if shutil.which(n)), None)
        assert name, "no chromium here: scripts/setup.sh --all installs it"
        to_browser, self.to = os.pipe()
        self.back, from_browser = os.pipe()

        def hand_over():  # the browser reads descriptor 3 and writes 4
            os.dup2(to_browser, 103)
            os.dup2(from_browser, 104)
            os.dup2(103, 3)
            os.dup2(104, 4)

        self.process = subprocess.Popen(
            [name, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run",
             "--disable-extensions", "--disable-background-networking", "--disable-component-update",
             f"--user-data-dir={folder}", "about:blank"],
            preexec_fn=hand_over, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.number, self.held, self.events, self.session = 0, b"", [], None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.ask(domain + ".enable")

    def read(self):
        while b"\0" not in self.held:
            more = os.read(self.back, 1 << 20)
            assert more, "chromium went away"
            self.held += more
        message, self.held = self.held.split(b"\0", 1)
        return json.loads(message)

    def ask(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == self.number:
                assert "error" not in answer, (method, answer)
                return answer["result"]
            self.events.append(answer)

    def open(self, address):
        self.events.clear()
        self.ask("Page.navigate", url=address)
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self.read())

    def value(self, expression):
        done = self.ask("Runtime.evaluate", expression=expression, awaitPromise=True)
        assert "exceptionDetails" not in done, (expression, done["exceptionDetails"])
        return done["result"].get("value")

    def shoot(self, path):
        path.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"]))

    def close(self):
        os.close(self.to)
        self.process.wait(timeout=30)


def quiet(events, address):
    """No message, no exception, and one request: the page itself; its images are inside."""
    requests = [e["params"]["request"]["url"][:200] for e in events if e.get("method") == "Network.requestWillBeSent"]
    requests = [url for url in requests if not url.startswith("data:image/")]
    assert requests == [address], f"requests: {requests}"
    loud = ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown")
    messages = [e["params"] for e in events if e.get("method") in loud]
    assert not messages, f"console: {messages}"


def look(browser, address, name, size, wanted, folder, scripts=True):
    width, height, scheme = size
    browser.ask("Emulation.setScriptExecutionDisabled", value=not scripts)
    browser.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                mobile=width < 500)
    browser.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.open(address)
    script = LOOK.replace("NAMES", json.dumps(sorted(wanted)))
    seen = json.loads(browser.ask("Runtime.evaluate", expression=script)["result"]["value"])
    quiet(browser.events, address)
    assert seen["scroll"] <= 0 and not seen["wide"], f"{name}: wider than the screen: {seen['wide'][:5]}"
    assert not seen["texts"], f"{name}: text leaves the screen: {seen['texts'][:5]}"
    assert not seen["cramped"], f"{name}: words that do not fit on their line or button: {seen['cramped'][:5]}"
    assert seen["outside"] == 0, f"{name}: {seen['outside']} marks lie outside of their chart"
    assert seen["count"] == wanted, f"{name}: {seen['count']} instead of {wanted}"
    drawn = " ".join(c[0] for c in seen["charts"])
    for chart in CHARTS:
        assert chart in drawn, f"{name}: no chart {chart}"
    assert all(c[1] > 200 and c[2] > 15 for c in seen["charts"]), f"{name}: {seen['charts']}"
    assert seen["focusable"] >= 8, f"{name}: only {seen['focusable']} places for the keyboard"
    if folder and scripts:
        shot = browser.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                           clip={"x": 0, "y": 0, "width": width, "height": seen["height"], "scale": 1})
        (folder / f"{name}.png").write_bytes(base64.b64decode(shot["data"]))
    return seen


def main(html, report, folder=None):
    report = json.loads(pathlib.Path(report).read_text())
    wanted = page.wanted(report)
    address = pathlib.Path(html).resolve().as_uri()
    folder = pathlib.Path(folder) if folder else None
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(profile)
        try:
            look(browser, address, "no script", SIZES["light"], wanted, folder, scripts=False)
            assert browser.value("document.querySelectorAll('button, input, select').length") == 0, "controls without script"
            seen = {}
            for name, size in SIZES.items():
                seen[name] = look(browser, address, name, size, wanted, folder)
                done = explore.explore(browser, report, fingers="phone" in name)
                quiet(browser.events, address)
                if folder:
                    browser.shoot(folder / f"{name}-explored.png")
        finally:
            browser.close()
    assert seen["light"]["page"] != seen["dark"]["page"] and seen["light"]["ink"] != seen["dark"]["ink"], "no dark page"
    print(f"chromium: {sum(wanted.values())} marks in {len(seen['light']['charts'])} charts, {len(SIZES)} sizes, {done} things done in each: ok")


if __name__ == "__main__":
    main(*sys.argv[1:])
