"""What an operator sees: Prometheus' configuration, alerts, Grafana's dashboards. See docs/dashboards.md."""
