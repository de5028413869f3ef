// Package trust makes programs trust a certificate: those of one command by the environment (Folder, Environment), or those of
// the whole machine by the system's store (Store).
package trust
