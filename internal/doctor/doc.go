// Package doctor finds problems that keep Tributary from working on this machine, and how to fix them.
//
// Facts are collected first (Collect), each within a bounded time and without changing anything; then pure functions
// judge them (Judge), so that every verdict has a test with invented facts. Only Collect sends anything, and only with
// Online: one DNS query over each link.
package doctor
