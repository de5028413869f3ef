// Package linktest has namespaces, interfaces and DNS servers for the tests of links.
package linktest
