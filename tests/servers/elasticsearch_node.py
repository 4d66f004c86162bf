"""One Elasticsearch node as a process of this machine."""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.servers.elasticsearch_installation import java_home
from tests.servers.program import Program

# Elasticsearch refuses to run as root. It runs as "nobody" then, but may go where root may: test folders and caches
# of root are closed to others, and no account, copy or change of owner is needed. Without no_setuid_fixup Java's
# own checks of whether it may write somewhere would leave that right out of account.
AS_NOBODY = (
    *("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"),
    *("--inh-caps=+dac_override", "--ambient-caps=+dac_override", "--securebits=+no_setuid_fixup"),
)


class ElasticsearchNode(Program):
    """One node. Its data, configuration and log are under `folder` and survive `kill` and `stop`."""

    def __init__(self, folder: Path, *, home: Path, heap: str, java_options: Sequence[str]) -> None:
        super().__init__(folder.name, folder, ())
        self.folder = folder
        self.home = home
        self._java_options = (f"-Xms{heap}", f"-Xmx{heap}", *java_options)

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Writes the configuration of a node that does not run yet."""
        shutil.copytree(self.home / "config", self.folder / "config")
        (self.folder / "tmp").mkdir()
        own = {"node.name": self.name, "path.data": str(self.folder / "data"), "path.logs": str(self.folder / "logs")}
        # Every line of JSON values is YAML, too.
        lines = [f"{name}: {json.dumps(value)}\n" for name, value in {**own, **settings}.items()]
        (self.folder / "config" / "elasticsearch.yml").write_text("".join(lines), encoding="utf-8")

    def store_secret(self, name: str, value: str) -> None:
        """Puts a secret setting into the node's keystore, before it starts."""
        for arguments, text in ((("create",), ""), (("add", "--stdin", name), value)):
            command = self._tool("elasticsearch-keystore", *arguments)
            done = subprocess.run(
                command, env=self.environment(), input=text, capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise RuntimeError(f"elasticsearch-keystore failed: {done.stdout}{done.stderr}")

    def command_line(self) -> list[str]:
        """Elasticsearch's own: it writes the process id itself."""
        return self._tool("elasticsearch", "-p", str(self._pid_file))

    def _tool(self, name: str, *arguments: str) -> list[str]:
        return [*(AS_NOBODY if os.geteuid() == 0 else ()), str(self.home / "bin" / name), *arguments]

    def environment(self) -> dict[str, str]:
        """The variables of the server and of its command line tools, which are in `home / "bin"`."""
        return {
            **os.environ,
            "ES_JAVA_HOME": str(java_home()),
            "ES_JAVA_OPTS": " ".join(self._java_options),
            "ES_PATH_CONF": str(self.folder / "config"),
            "ES_TMPDIR": str(self.folder / "tmp"),
        }
