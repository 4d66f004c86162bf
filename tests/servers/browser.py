"""Makes sure that a browser is there for the tests of the page: `python -m tests.servers.browser`.

Looks where the tests look (CHROMIUM, then the PATH). On Debian and as root it installs Chromium;
elsewhere it says how to, and fails, because a test that did not run has not passed.
"""

import os
import shutil
import subprocess
import sys

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
NOT_RUN = (
    "not run: the tests of the page need a Chromium or Chrome. Install one (Debian: apt-get install chromium), or name "
    "its program in CHROMIUM\n"
)


def find_browser() -> str | None:
    """The browser that the tests use, None if there is none."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)


def main() -> None:
    """Installs Chromium where it is missing and can be installed."""
    if find_browser():
        return
    if shutil.which("apt-get") and os.geteuid() == 0:
        subprocess.run(["apt-get", "update", "-qq"], check=True, stdout=subprocess.DEVNULL)
        command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    if not find_browser():
        sys.stderr.write(NOT_RUN)
        sys.exit(1)


if __name__ == "__main__":
    main()
