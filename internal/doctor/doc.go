// Package doctor finds out what would keep Tributary from working on this machine, and what mends it.
//
// Facts are collected first (Collect), each within a bounded time and without changing anything; what they mean is decided
// by pure functions of them (Judge), so that every verdict has a test with invented facts. Only Collect sends anything, and
// only with Online: one DNS question over each link.
package doctor
