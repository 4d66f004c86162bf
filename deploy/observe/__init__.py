"""What an operator sees: Prometheus' configuration, alerts, Grafana's dashboards. docs/observing.md explains them."""
