// Programs that read this send their requests to Tributary, but for this machine and its local networks. If Tributary does
// not run, they connect by themselves. Names are not looked up: the program would wait for the answer.
function FindProxyForURL(url, host) {
	var h = host.toLowerCase().replace(/^\[/, "").replace(/\]$/, "").replace(/\.$/, "");
	if (h.indexOf(":") >= 0) { // IPv6
		// Unspecified and loopback; what stands for IPv4; link-local and site-local; unique local; multicast.
		if (/^::1?$|^::ffff:|^fe[89a-f]|^f[cd]|^ff/.test(h)) return "DIRECT";
	} else if (/^\d+\.\d+\.\d+\.\d+$/.test(h)) {
		// This network, loopback, link-local (RFC 6890); private networks (RFC 1918).
		if (/^(0|10|127)\.|^169\.254\.|^192\.168\.|^172\.(1[6-9]|2\d|3[01])\./.test(h)) return "DIRECT";
	} else if (h.indexOf(".") < 0 || /\.(localhost|local|internal|home\.arpa)$/.test(h)) {
		return "DIRECT"; // plain names (localhost is one), and those of local networks (RFC 6761, 6762, 8375, ICANN's .internal)
	}
	return "PROXY PROXY-ADDRESS; DIRECT";
}
