// Package deploy contains the files that run and monitor Tributary: systemd units, Prometheus rules, a Grafana
// dashboard. Its tests check them against the program.
package deploy
