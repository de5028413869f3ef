package fault

// The exit codes of a command that fails because of a request.
const (
	ExitPermission = 4
	ExitNetwork    = 5
	ExitServer     = 6
	ExitTLS        = 7
)

// Row holds the consequences of an Outcome. Only outcomes that can end a request have a Status.
type Row struct {
	Name        string
	Blame       Blame
	Retry       bool   // the same request may succeed later without any change
	Status      int    // HTTP status of the proxy's answer
	ProxyStatus string // error type in the answer's Proxy-Status field (RFC 9209 section 2.3)
	Exit        int    // exit code of a command that fails because of it
	// what happened: a sentence without its period, without any part of the request and without an address
	Text string
	Next string // what the user can do next, without a capital letter
}

// The statuses of answers (RFC 9110 section 15).
const (
	forbidden   = 403
	badGateway  = 502
	unavailable = 503
	timedOut    = 504
)

const (
	ended        = "The server closed the connection before its response was complete"
	inconsistent = "The server sent inconsistent responses"
	noAnswer     = "The server did not respond in time"
	again        = "try again"
	seeStatus    = `try again; "tributary status" shows the state of the links`
	seeServers   = `check the spelling of the host name; "tributary links" shows the DNS servers of each link`
)

var rows = [...]Row{
	Complete: {Name: "complete"},
	Canceled: {
		Name:        "canceled",
		Status:      badGateway,
		ProxyStatus: "proxy_internal_error",
		Exit:        ExitNetwork,
		Retry:       true,
		Text:        "The download failed",
		Next:        again,
	},

	Short:      {"short", BlameLink, true, badGateway, "connection_terminated", ExitNetwork, ended, again},
	Reset:      {"reset", BlameLink, true, badGateway, "connection_terminated", ExitNetwork, ended, again},
	Unanswered: {"unanswered", BlameLink, true, badGateway, "connection_terminated", ExitNetwork, ended, again},
	Stale:      {"stale", BlameNobody, true, badGateway, "connection_terminated", ExitNetwork, ended, again},
	Silence:    {"silent", BlameLink, true, timedOut, "http_response_timeout", ExitNetwork, noAnswer, seeStatus},
	Timeout:    {"timeout", BlameLink, true, timedOut, "connection_timeout", ExitNetwork, noAnswer, seeStatus},
	Unreachable: {
		"unreachable", BlameLink, true, badGateway, "destination_unavailable", ExitNetwork,
		"The server could not be reached", "check the address and the links, then try again",
	},
	Unknown: {
		"unknown", BlameLocal, true, badGateway, "connection_terminated", ExitNetwork,
		"The server could not be reached, or closed the connection before it responded",
		"check the address and the links, then try again",
	},
	PortClosed: {
		"port_closed", BlameOrigin, true, badGateway, "connection_refused", ExitNetwork,
		"The server refused the connection", "check the port, and that the server is running",
	},
	NoRoute: {
		"no_route", BlameLink, true, badGateway, "destination_ip_unroutable", ExitNetwork,
		"There is no route to the server", `"tributary links" shows the links and their addresses`,
	},

	LinkLost: {
		"link_lost", BlameLink, true, badGateway, "connection_terminated", ExitNetwork,
		"The link that carried the request stopped working", "try again: another link will be used",
	},

	Malformed: {
		"malformed", BlameOrigin, false, badGateway, "http_protocol_error", ExitServer,
		"The server's response breaks the rules of HTTP, so that its meaning or its end is not certain",
		`only the server's operator can correct this ("tributary get URL" names the fault)`,
	},

	UnknownName: {
		"unknown_name", BlameOrigin, true, badGateway, "dns_error", ExitNetwork,
		"The host name could not be resolved", seeServers,
	},
	SilentDNS: {
		"silent_dns", BlameLink, true, timedOut, "dns_timeout", ExitNetwork,
		"The host name could not be resolved in time", seeServers,
	},

	BadCertificate: {
		"bad_certificate", BlameOrigin, false, badGateway, "tls_certificate_error", ExitTLS,
		"The server's certificate is not valid for this host",
		"check the URL; to trust another authority, use tributary get --cacert, or let the client itself verify the server through an https proxy setting (CONNECT)",
	},
	WrongClock: {
		"wrong_clock", BlameLocal, false, badGateway, "tls_certificate_error", ExitTLS,
		"The server's certificate is not valid yet by the clock of this machine",
		"set the clock (timedatectl shows it; timedatectl set-ntp true lets the network set it)",
	},
	BadTLS: {
		"bad_tls", BlameOrigin, false, badGateway, "tls_protocol_error", ExitTLS,
		"The TLS handshake with the server failed",
		"check the scheme and the port of the URL; the server must have TLS 1.3, or TLS 1.2 with ECDHE (RSA key exchange is not supported)",
	},

	Busy: {
		"busy", BlameOrigin, true, unavailable, "destination_unavailable", ExitServer, "The server is busy",
		"try again later",
	},
	Changed: {
		"changed", BlameOrigin, false, badGateway, "http_response_incomplete", ExitServer,
		"The file changed on the server during the download", again,
	},
	Differs: {
		"differs", BlameOrigin, false, badGateway, "http_response_incomplete", ExitServer,
		"Two links delivered different bytes for this object",
		"try again; if that fails too, use only one link: tributary get --link NAME",
	},
	Unwanted: {"unwanted", BlameOrigin, false, badGateway, "http_protocol_error", ExitServer, inconsistent, again},
	NoRange:  {"no_range", BlameOrigin, false, badGateway, "http_protocol_error", ExitServer, inconsistent, again},
	BadRange: {"bad_range", BlameOrigin, false, badGateway, "http_protocol_error", ExitServer, inconsistent, again},

	NoLink: {
		"no_link", BlameLocal, true, unavailable, "destination_unavailable", ExitNetwork,
		"No usable network link is up", `"tributary links" shows the links and why they are not used`,
	},
	NoSlot: {
		"no_slot", BlameLocal, true, unavailable, "connection_limit_reached", ExitNetwork,
		"All connections to this host that max_connections_per_host allows are in use",
		"try again when a download from this host has ended, or raise the limit in the configuration",
	},
	Unbound: {
		"unbound", BlameLocal, false, unavailable, "proxy_configuration_error", ExitPermission,
		"The connection could not be bound to a network link", `"tributary doctor" shows what is missing`,
	},
	OffLink: {
		"off_link", BlameLocal, true, badGateway, "destination_ip_unroutable", ExitNetwork,
		"The server is in the network of an interface that is not used as a link, such as a VPN or a container bridge",
		`exempt it from the proxy (no_proxy), or use that interface (--link NAME); "tributary links" shows the interfaces`,
	},
	UpstreamDenied: {
		"upstream_denied", BlameLocal, true, badGateway, "destination_ip_prohibited", ExitNetwork,
		"The upstream proxy of a link (via in the configuration) does not allow the destination, and no other link can reach it",
		"ask the operator of that proxy, or use another link",
	},
	// Denied addresses and Tributary's own listeners share this answer: different answers would show a scanner what
	// listens here (R194).
	Denied: {
		"denied", BlameOrigin, false, forbidden, "destination_ip_prohibited", ExitNetwork,
		"The destination is Tributary itself, or an address that is not allowed",
		"exempt local addresses from the proxy: no_proxy=localhost,127.0.0.0/8,::1. To allow others, set allow_destinations in the configuration",
	},
	Rebound: {
		"rebound", BlameOrigin, false, forbidden, "destination_ip_prohibited", ExitNetwork,
		"A public host name resolves to an address that is not on the internet, which a malicious web page could exploit",
		"if this is intended, allow that network with allow_destinations in the configuration, for example [\"192.168.1.0/24\"], or " +
			"[\"198.18.0.0/15\"] if your router makes up addresses for names (fake-ip), or use the address instead of the name",
	},
}
