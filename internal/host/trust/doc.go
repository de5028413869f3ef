// Package trust makes programs trust a certificate: the programs of one command through the environment (Folder,
// Environment), or those of the whole machine through the system's store (Store).
package trust
