// Package transport carries requests and tunnels to origins over the links of the machine. A Transport follows which links
// there are, dials over them within the limits of the configuration (destinations, rates, monthly data), and decides for each
// request whether the engine divides it or whether it goes over one link as it is.
//
// The proxy, the commands and package pkg/tributary are fronts of it.
package transport
