// Package spread chooses links for traffic that cannot be divided: tunnels, redirected connections, and requests that
// pass through. A program that opens several connections to a host at the same time gets several links; everything else
// stays together.
//
//   - A session comprises the connections of one user to one registrable domain. It stays on its link until ten minutes
//     after its last connection: logins, shopping carts and video players are often bound to the address that they
//     started with.
//   - The first connection of a program to a host goes where its session is, or over the best link.
//   - Further connections at the same time go to the link with the highest goodput per running connection. Links that
//     are far slower or far more distant than the best get none: connections there would finish last and make the
//     program slower.
//   - Hosts that the user lists are never spread. In mode Auto, neither are browsers, nor redirected programs that the
//     user does not name.
//
// Goodput is measured in divided downloads, which keep their links busy, and in connections of one program to one host
// that use several links at the same time: only then are the figures of two links comparable, since server and program
// are the same.
//
// The package is pure: now is an argument. It is not safe for concurrent use.
//
// Reasons: docs/decisions/spread.md.
package spread
