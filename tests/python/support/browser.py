"""A headless browser for the tests of pages: the document after its scripts have run, and the addresses that it requested."""
import os
import re
import shutil
import subprocess

import pytest

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no headless browser (Debian: apt install chromium), so pages are not looked at")

# Addresses that the browser itself contacts (they are blocked).
BROWSERS_OWN = ("googleapis.com", "google.com", "gvt1.com")


def browse(page, folder):
    """Runs the browser on a file; (the document as its scripts left it, the addresses that the network stack was asked for)."""
    log = folder / "net.json"
    command = [
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
        "--disable-component-update", "--disable-features=OptimizationHints", "--disable-default-apps", "--disable-sync", "--disable-extensions", "--window-size=1400,900",
        "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={folder / 'profile'}", f"--log-net-log={log}", "--dump-dom", page.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ, "HOME": str(folder), "LD_PRELOAD": ""})
    assert done.returncode == 0, done.stderr
    return done.stdout, set(re.findall(r'"url":\s*"((?:https?|wss?)://[^"]+)"', log.read_text(errors="replace")))
