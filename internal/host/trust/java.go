package trust

import (
	"bytes"
	"crypto/sha256"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pavlo-v-chernykh/keystore-go/v4"
	"software.sslmate.com/src/go-pkcs12"
)

// javaOptions is the variable with options for all Java programs. It precedes the other variables and the command line,
// so that theirs count.
const javaOptions = "JAVA_TOOL_OPTIONS"

// javaVariables are variables whose options may replace ours.
var javaVariables = []string{
	javaOptions, "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "MAVEN_OPTS", "GRADLE_OPTS",
	"JAVA_OPTS", "SBT_OPTS",
}

// javaSettings are parts of options with which a user has chosen a store or a proxy.
var javaSettings = []string{"javax.net.ssl.trustStore", "proxyHost", "ProxyHost", "useSystemProxies"}

// usualPassword protects the stores that Java comes with, and is well known.
const usualPassword = "changeit"

// java gives Java programs the proxy, and a copy of Java's store with the certificate. One without the other would not
// help: without the store, Java rejects what the proxy shows it. Without both, Java programs connect without the proxy,
// and the last line of run names them.
func (e *environment) java(proxy string, builtIn certificates) {
	to, err := url.Parse(proxy)
	if err != nil {
		return
	}
	for _, name := range javaVariables {
		given := e.get(name)
		if slices.ContainsFunc(javaSettings, func(s string) bool { return strings.Contains(given, s) }) {
			return
		}
	}
	file := javaStore(e.get)
	text, err := os.ReadFile(file)
	if err != nil {
		return // there is no Java
	}
	store, all, err := readStore(text)
	if err != nil || !e.roots.withinList(all, builtIn) || strings.ContainsAny(e.folder.Path, " \t'\"") {
		return
	}
	block, _ := pem.Decode(e.certificate)
	if block == nil {
		return
	}
	var out bytes.Buffer
	err = errors.Join(store.SetTrustedCertificateEntry("tributary run", entryOf(block.Bytes)),
		store.Store(&out, []byte(usualPassword)))
	path, werr := e.folder.write("cacerts", out.Bytes())
	if e.err = errors.Join(e.err, err, werr); e.err != nil {
		return
	}
	options := "-Djavax.net.ssl.trustStore=" + path
	for _, scheme := range []string{"http", "https"} {
		options += fmt.Sprintf(" -D%s.proxyHost=%s -D%s.proxyPort=%s", scheme, to.Hostname(), scheme, to.Port())
	}
	options += " -Dhttp.nonProxyHosts=" + strings.Join(javaHosts(e.get("no_proxy")), "|")
	e.set(javaOptions, strings.TrimSpace(options+" "+e.get(javaOptions)))
}

// javaHosts returns the entries of no_proxy in Java's form, except networks, which Java does not know.
func javaHosts(list string) []string {
	all := []string{"localhost", "127.*", "[::1]"}
	for entry := range strings.SplitSeq(list, ",") {
		name := strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(entry), "*"), ".")
		if name == "" || strings.ContainsAny(name, "/:|\" \t") || name == "127.0.0.1" || slices.Contains(all, name) {
			continue
		}
		all = append(all, name, "*."+name)
	}
	return all
}

// javaStore returns the file with the authorities of the Java that programs use, "" if there is none.
func javaStore(getenv func(string) string) string {
	home := getenv("JAVA_HOME")
	if home == "" {
		for _, folder := range filepath.SplitList(getenv("PATH")) {
			if java, err := filepath.EvalSymlinks(filepath.Join(folder, "java")); err == nil {
				home = filepath.Dir(filepath.Dir(java))
				break
			}
		}
	}
	for _, folder := range []string{"lib/security", "jre/lib/security"} { // the second one up to Java 8
		for _, name := range []string{"jssecacerts", "cacerts"} { // Java reads the first one that exists
			path := filepath.Join(home, folder, name)
			if is, err := os.Stat(path); err == nil && is.Mode().IsRegular() {
				return path
			}
		}
	}
	return ""
}

// readStore reads a store of Java in one of its two formats. The copy is in the older one, which every Java reads
// without a password.
func readStore(text []byte) (store keystore.KeyStore, all certificates, err error) {
	store, all = keystore.New(), certificates{}
	if err := store.Load(bytes.NewReader(text), []byte(usualPassword)); err == nil {
		for _, alias := range store.Aliases() {
			if c, err := store.GetTrustedCertificateEntry(alias); err == nil {
				all[sha256.Sum256(c.Certificate.Content)] = struct{}{}
			}
		}
		return store, all, nil
	}
	found, err := pkcs12.DecodeTrustStore(text, "") // as JDK 18 and later have it
	if err != nil {
		found, err = pkcs12.DecodeTrustStore(text, usualPassword)
	}
	if err != nil {
		return store, nil, err
	}
	for i, c := range found {
		all[sha256.Sum256(c.Raw)] = struct{}{}
		if err := store.SetTrustedCertificateEntry(strconv.Itoa(i), entryOf(c.Raw)); err != nil {
			return store, nil, err
		}
	}
	return store, all, nil
}

func entryOf(der []byte) keystore.TrustedCertificateEntry {
	return keystore.TrustedCertificateEntry{
		CreationTime: time.Unix(0, 0), Certificate: keystore.Certificate{Type: "X.509", Content: der},
	}
}
