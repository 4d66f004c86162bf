"""Writes the alert rules of deploy/observe as a PrometheusRule, which is how the Prometheus operator takes them.

    python -m deploy.kubernetes.alert_rules

kustomize reads no files outside the folder that it builds, so there is a copy; a test says when it is old.
"""

from pathlib import Path

KUBERNETES = Path(__file__).parent
SOURCE = KUBERNETES.parent / "observe" / "alerts.yml"
TARGET = KUBERNETES / "components" / "monitoring" / "alerts.yaml"
HEAD = """\
# Made of deploy/observe/alerts.yml by `python -m deploy.kubernetes.alert_rules`: change them there.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: alerts
spec:
"""


def prometheus_rule(alerts: str) -> str:
    """The manifest, from the text of a file of rules: the same text, further in."""
    return HEAD + "".join(f"  {line}" if line.strip() else line for line in alerts.splitlines(keepends=True))


def main() -> None:
    """Writes the manifest."""
    TARGET.write_text(prometheus_rule(SOURCE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
