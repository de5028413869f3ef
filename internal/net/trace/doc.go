// Package trace records how many bytes each link carries, in steps of 100 ms, and defines the format of such records.
// tributary get --trace writes them, and tributary-lab replays them; Nika 2015 used packet captures of each radio for
// this. The bytes are those of the program's sockets: they include TLS and request heads, but not packet headers,
// acknowledgments and lost packets. Records do not contain addresses or URLs.
package trace
