"""A real browser: Debian's Chromium, driven by its own driver."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from shutil import which
from typing import Any

import httpx
from selenium import webdriver
from selenium.common.exceptions import JavascriptException, NoSuchElementException, StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from tests.support.processes import until

CHROMIUM, DRIVER = which("chromium") or which("google-chrome"), which("chromedriver")
MISSING = "Chromium and its driver are not installed: apt-get install chromium chromium-driver"
FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"),
    "--disable-lcd-text",
)
REPLACED = (NoSuchElementException, StaleElementReferenceException, JavascriptException)
"""What a look at a page raises while the next one takes its place."""
WIDE, PHONE = (1280, 900), (360, 740)


class Browser:
    """One browser for all tests of a process; each test logs in anew."""

    def __init__(self, driver: webdriver.Chrome, shots: Path) -> None:
        self.driver = driver
        self.shots = shots
        self.url = ""

    def log_in(self, url: str, token: str) -> None:
        """A new session on this server, without the form."""
        self.url = url
        self.forget()
        answer = httpx.post(f"{url}/login", data={"token": token, "next": "/"})
        assert answer.status_code == 303, answer.text
        cookies = [{"name": name, "value": value, "url": url} for name, value in answer.cookies.items()]
        for cookie in cookies:
            self.driver.execute_cdp_cmd("Network.setCookie", {**cookie, "httpOnly": True, "sameSite": "Strict"})

    def forget(self) -> None:
        """Without a session and a page: what is open would go on asking a server that is gone."""
        self.driver.get("about:blank")
        self.driver.execute_cdp_cmd("Network.clearBrowserCookies", {})

    def open(self, path: str) -> None:
        """Open a page, and wait until its scripts have run: on a busy machine the driver returns earlier."""
        self.driver.get(self.url + path)
        until(self._is_complete, f"the page {path}")

    @property
    def path(self) -> str:
        """Where it is."""
        return self.driver.current_url.removeprefix(self.url)

    @property
    def text(self) -> str:
        """What the page says; read again if the next one replaced it meanwhile."""
        return until(self._said, "the text of a page")[0]

    def _said(self) -> list[str]:
        try:
            return [self.driver.find_element(By.TAG_NAME, "main").text]
        except REPLACED:
            return []

    def find(self, selector: str) -> WebElement:
        """The one element that a selector names."""
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        """All elements that a selector names."""
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def press(self, words: str) -> None:
        """Press the first button or link whose text begins so, and wait for the page that it leads to."""
        found = [each for each in self.all("main button, main a") if each.text.startswith(words)]
        assert found, f"no button {words!r} on {self.path}: {self.text}"
        self._follow(found[0], words)

    def submit(self, selector: str) -> None:
        """Press the button or link that a selector names, and wait for the page that it leads to."""
        self._follow(self.find(selector), selector)

    def _follow(self, button: WebElement, name: str) -> None:
        with self.leaving(name):
            button.click()

    @contextmanager
    def leaving(self, name: str) -> Iterator[None]:
        """What is done here leads to another document: wait until that is complete."""
        self.run("window.isLeft = true")
        yield
        until(self._is_complete, f"the page after {name!r}")

    def _is_complete(self) -> bool:
        """Whether the page is another one than before, and complete. One script, so that it looks at one document."""
        try:
            return bool(self.run("return !window.isLeft && document.readyState === 'complete'"))
        except REPLACED:
            return False

    def type(self, keys: str) -> None:
        """Type without a field."""
        webdriver.ActionChains(self.driver).send_keys(keys).perform()

    def go(self, keys: str) -> None:
        """Type what leads to another page, and wait for it."""
        with self.leaving(keys):
            self.type(keys)

    def point_at(self, element: WebElement) -> None:
        """Move the pointer."""
        webdriver.ActionChains(self.driver).move_to_element(element).perform()

    @contextmanager
    def without_scripts(self) -> Iterator[None]:
        """As with JavaScript turned off."""
        self.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        yield
        self.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
        self.driver.get("about:blank")  # the page that is open keeps the setting

    def enter(self, selector: str, text: str, *, send: bool = False) -> None:
        """Write into a field; `send` submits its form, and waits for the page that it leads to."""
        field = self.find(selector)
        field.clear()
        if not send:
            field.send_keys(text)
            return
        with self.leaving(text):
            field.send_keys(text + Keys.ENTER)

    def run(self, script: str, *arguments: Any) -> Any:
        """The value of a script."""
        return self.driver.execute_script(script, *arguments)

    def resize(self, size: tuple[int, int], theme: str = "light") -> None:
        """Another screen, and another wish of its system for light or dark."""
        width, height = size
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == PHONE}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        features = [{"name": "prefers-color-scheme", "value": theme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def errors(self) -> list[str]:
        """What the console complained about since the last call."""
        log = self.driver.get_log("browser")  # type: ignore[no-untyped-call]
        return [each["message"] for each in log if each["level"] == "SEVERE"]

    def violations(self, *rules: str) -> list[str]:
        """What axe-core finds wrong with the page for users who do not see, hear or point: by these rules, or all."""
        self.run(files("axe_core_python").joinpath("axe.min.js").read_text())
        script = """const [rules, done] = arguments;
        const options = rules.length ? { runOnly: { type: "rule", values: rules } } : {};
        axe.run(document, options).then(done, (error) => done({error: String(error)}))"""
        found = self.driver.execute_async_script(script, rules)
        assert "error" not in found, found
        return [f"{each['id']}: {json.dumps(each['nodes'])[:500]}" for each in found["violations"]]

    def shoot(self, name: str) -> None:
        """Keep a picture of the page."""
        self.shots.mkdir(parents=True, exist_ok=True)
        self.driver.save_screenshot(str(self.shots / f"{name}.png"))


@contextmanager
def browsing(shots: Path) -> Iterator[Browser]:
    """A browser from start to end, with a profile of its own."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM or ""
    with tempfile.TemporaryDirectory(prefix="windlass-chromium-", ignore_cleanup_errors=True) as profile:
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        driver = webdriver.Chrome(options=options, service=Service(DRIVER or ""))
        try:
            yield Browser(driver, shots)
        finally:
            driver.quit()
