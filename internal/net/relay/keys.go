package relay

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"strings"
	"time"
)

// Protocols of ALPN.
const (
	laneProtocol  = "tributary-lane/1"
	enrolProtocol = "tributary-enrol/1"
)

// Key is the private key of an end. It is never printed.
type Key struct{ private ed25519.PrivateKey }

// String keeps keys out of logs.
func (Key) String() string { return "[key]" }

// KeyID identifies a public key: its SHA-256, in base64 for URLs.
type KeyID string

// newKey generates a key. No identity begins with "-", because users type identities as command arguments, where it
// would be a flag.
func newKey() (Key, error) {
	for {
		_, private, err := ed25519.GenerateKey(rand.Reader)
		if k := (Key{private}); err != nil || !strings.HasPrefix(string(k.ID()), "-") {
			return k, err
		}
	}
}

// MarshalText implements encoding.TextMarshaler, for the state file.
func (k Key) MarshalText() ([]byte, error) {
	return []byte(base64.RawURLEncoding.EncodeToString(k.private.Seed())), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *Key) UnmarshalText(b []byte) error {
	seed, err := base64.RawURLEncoding.DecodeString(string(b))
	if err != nil || len(seed) != ed25519.SeedSize {
		return errors.New("not a key")
	}
	k.private = ed25519.NewKeyFromSeed(seed)
	return nil
}

// ID returns the identity of the public key.
func (k Key) ID() KeyID { return idOf(k.private.Public().(ed25519.PublicKey)) }

func idOf(public ed25519.PublicKey) KeyID {
	sum := sha256.Sum256(public)
	return KeyID(base64.RawURLEncoding.EncodeToString(sum[:]))
}

// certificate wraps the public key for TLS. It contains nothing else.
func (k Key) certificate() (tls.Certificate, error) {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0),
		KeyUsage: x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, k.private.Public(), k.private)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: k.private}, err
}

// peerOf returns the key of the other end, "" if it has none.
func peerOf(s tls.ConnectionState) KeyID {
	if len(s.PeerCertificates) == 0 {
		return ""
	}
	public, ok := s.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
	if !ok {
		return ""
	}
	return idOf(public)
}

// config returns the settings that both ends share: TLS 1.3, keys instead of names, and nothing that outlasts a
// connection.
func (k Key) config(accept func(tls.ConnectionState) error) (*tls.Config, error) {
	cert, err := k.certificate()
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		Certificates:           []tls.Certificate{cert},
		SessionTicketsDisabled: true,
		InsecureSkipVerify:     true, // there is no certificate authority: accept compares keys
		ClientAuth:             tls.RequireAnyClientCert,
		VerifyConnection:       accept,
	}, err
}

// ErrWrongKey means that the server does not have the key that it was paired with, or that its invitation names.
var ErrWrongKey = errors.New("the relay has another key than the one it was paired with")

const tokenSize = 24

// Invitation lets a client enrol with a server, once.
type Invitation struct {
	Address string // "host:port"
	Server  KeyID
	token   []byte
}

// Link returns the invitation as a URL. Anyone who knows it can use the relay.
func (i Invitation) Link() string {
	return "tributary://" + i.Address + "#" + string(i.Server) + "." + base64.RawURLEncoding.EncodeToString(i.token)
}

// String keeps tokens out of logs.
func (i Invitation) String() string { return "tributary://" + i.Address + "#..." }

// ErrNotInvitation means that a text does not have the form that Link returns.
var ErrNotInvitation = errors.New("not an invitation: it looks like tributary://HOST:PORT#KEY.TOKEN, and its last part is long")

// ParseInvitation parses a URL returned by Link. Its error is ErrNotInvitation, which does not repeat the URL.
func ParseInvitation(s string) (Invitation, error) {
	bad := ErrNotInvitation
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "tributary" || u.Path != "" || u.User != nil {
		return Invitation{}, bad
	}
	if _, port, err := net.SplitHostPort(u.Host); err != nil || port == "" {
		return Invitation{}, bad
	}
	key, token, _ := strings.Cut(u.Fragment, ".")
	raw, err := base64.RawURLEncoding.DecodeString(token)
	sum, keyErr := base64.RawURLEncoding.DecodeString(key)
	if err != nil || keyErr != nil || len(raw) != tokenSize || len(sum) != sha256.Size {
		return Invitation{}, bad
	}
	return Invitation{u.Host, KeyID(key), raw}, nil
}

func hashToken(token []byte) string {
	sum := sha256.Sum256(token)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

const (
	idSize     = 16
	secretSize = 32
	helloSize  = 1 + idSize + secretSize + 4 + sha256.Size
	replySize  = 1 + 8
)

// The first byte of a hello, and of the reply to it.
const (
	helloNew, helloJoin         = 1, 2
	replyOK, replyUnknown, full = 0, 1, 2
)

// proof ties a secret and a lane's number to a TLS connection.
func proof(s tls.ConnectionState, secret []byte, rest []byte) ([]byte, error) {
	bound, err := s.ExportKeyingMaterial("EXPORTER-tributary-lane", nil, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("bind the lane to its connection: %w", err)
	}
	h := hmac.New(sha256.New, secret)
	h.Write(bound)
	h.Write(rest)
	return h.Sum(nil), nil
}
