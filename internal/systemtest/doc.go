// Package systemtest tests the proxy as a whole, over links that lead to a fault-injecting origin on loopback. It has
// no other code.
package systemtest
