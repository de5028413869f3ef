// Package transport carries requests and tunnels to origins over the links of the machine. A Transport keeps track of
// the links, dials over them within the limits of the configuration (destinations, rates, monthly data), and decides
// for each request whether the engine divides it or it goes over one link.
//
// The proxy, the commands and package pkg/tributary use it.
package transport
