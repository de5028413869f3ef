// Package pac tests the product's /proxy.pac as a browser would: a JavaScript engine runs it. It has no code but tests.
package pac
