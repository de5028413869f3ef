// Package deploy holds what runs and watches Tributary: systemd units, Prometheus rules, a Grafana dashboard. Its tests
// hold them to the program.
package deploy
