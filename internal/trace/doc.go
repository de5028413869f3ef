// Package trace records what each link carries, in steps of 100 ms, and has the format of such records: what Nika 2015 took with
// a packet capture on each radio, for tributary get --trace and for the replay of tributary-lab. Bytes are those of the
// program's sockets: with TLS and request heads, without the headers of packets, acknowledgments and lost packets. Records hold
// no addresses and no URLs.
package trace
