// Command image writes an OCI archive with one image for each platform: a static binary, the certificates of Mozilla's
// list, and an account without privileges. The images do not contain a shell. The same input always gives the same
// bytes.
//
//	image -o ARCHIVE -config FILE -version VERSION -revision COMMIT linux/amd64=BINARY linux/arm/v7=BINARY ...
//
// $SOURCE_DATE_EPOCH is the time of all files and of the images, in seconds since 1970.
package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// account is the user of the image, as a number: Kubernetes' runAsNonRoot cannot check a name.
const account = 65532

// file is one entry of a layer.
type file struct {
	name    string // below /, ending in "/" for a folder
	mode    int64
	content []byte
	own     bool // owned by the account, otherwise by root
}

func main() {
	if err := run(os.Args[1:], os.Getenv("SOURCE_DATE_EPOCH")); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// run executes the command line args.
func run(args []string, epoch string) error {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	out := flags.String("o", "", "write the archive to `FILE`")
	config := flags.String("config", "", "`FILE` that becomes /etc/tributary/config.toml")
	version := flags.String("version", "", "semantic `VERSION`")
	revision := flags.String("revision", "", "`COMMIT` of the source")
	if err := flags.Parse(args); err != nil {
		return err
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	settings, err := os.ReadFile(*config)
	if err != nil {
		return err
	}
	at := time.Unix(seconds, 0).UTC()
	labels := map[string]string{
		"org.opencontainers.image.title":       "tributary",
		"org.opencontainers.image.description": "HTTP proxy that runs one download over every network link",
		"org.opencontainers.image.version":     *version,
		"org.opencontainers.image.revision":    *revision,
		"org.opencontainers.image.source":      "https://github.com/tributary-http/tributary",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.created":     at.Format(time.RFC3339),
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arg := range flags.Args() {
		name, path, ok := strings.Cut(arg, "=")
		platform, err := v1.ParsePlatform(name)
		if !ok || err != nil {
			return fmt.Errorf("%q is not PLATFORM=BINARY: %w", arg, err)
		}
		binary, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		image, err := imageOf(*platform, files(binary, settings), labels, at)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: platform},
		})
	}
	return archive(*out, mutate.Annotations(index, labels).(v1.ImageIndex), *version, at)
}

// files returns the files of an image.
func files(binary, settings []byte) []file {
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil { // a file of certificates cannot express that one is valid only for some names
			_ = pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer never fails
		}
	}
	passwd := fmt.Sprintf("root:x:0:0:root:/:/sbin/nologin\ntributary:x:%d:%[1]d:Tributary:/var/lib/tributary:/sbin/nologin\n", account)
	return []file{
		{name: "etc/", mode: 0o755},
		{name: "etc/group", mode: 0o644, content: fmt.Appendf(nil, "root:x:0:\ntributary:x:%d:\n", account)},
		{name: "etc/passwd", mode: 0o644, content: []byte(passwd)},
		{name: "etc/ssl/", mode: 0o755},
		{name: "etc/ssl/certs/", mode: 0o755},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, content: roots.Bytes()},
		{name: "etc/tributary/", mode: 0o755},
		{name: "etc/tributary/config.toml", mode: 0o644, content: settings},
		{name: "run/", mode: 0o755},
		{name: "run/tributary/", mode: 0o700, own: true},
		{name: "usr/", mode: 0o755},
		{name: "usr/bin/", mode: 0o755},
		{name: "usr/bin/tributary", mode: 0o755, content: binary},
		{name: "var/", mode: 0o755},
		{name: "var/lib/", mode: 0o755},
		{name: "var/lib/tributary/", mode: 0o700, own: true},
	}
}

// imageOf returns an image with the files in one layer.
func imageOf(platform v1.Platform, files []file, labels map[string]string, at time.Time) (v1.Image, error) {
	content, err := tarOf(files, at)
	if err != nil {
		return nil, err
	}
	opener := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
	layer, err := tarball.LayerFromOpener(opener, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.Append(image, mutate.Addendum{
		Layer: layer, History: v1.History{Created: v1.Time{Time: at}, CreatedBy: "make dist"},
	})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Variant = platform.OS, platform.Architecture, platform.Variant
	config.Created = v1.Time{Time: at}
	config.Config = v1.Config{
		User:       fmt.Sprintf("%d:%[1]d", account),
		Entrypoint: []string{"/usr/bin/tributary"},
		Cmd:        []string{"serve", "--config", "/etc/tributary/config.toml"},
		Env: []string{
			"PATH=/usr/bin", "HOME=/var/lib/tributary", "RUNTIME_DIRECTORY=/run/tributary",
			"STATE_DIRECTORY=/var/lib/tributary",
		},
		WorkingDir: "/var/lib/tributary",
		Labels:     labels,
	}
	return mutate.ConfigFile(image, config)
}

// tarOf packs files into a tar archive.
func tarOf(files []file, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		header := &tar.Header{
			Name:    f.name,
			Mode:    f.mode,
			Size:    int64(len(f.content)),
			ModTime: at,
			Format:  tar.FormatUSTAR,
		}
		if header.Typeflag = tar.TypeReg; strings.HasSuffix(f.name, "/") {
			header.Typeflag = tar.TypeDir
		}
		if f.own {
			header.Uid, header.Gid = account, account
		}
		err := w.WriteHeader(header)
		if err == nil {
			_, err = w.Write(f.content)
		}
		if err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

// archive writes an OCI layout with the index as its only entry into a tar file: programs that read a layout with
// several entries ask which one is meant.
func archive(out string, index v1.ImageIndex, version string, at time.Time) error {
	dir, err := os.MkdirTemp("", "image")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	l, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	// podman load and docker load give the image this name. Tags cannot contain "+".
	ref := layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": "localhost/tributary:" + strings.ReplaceAll(version, "+", "_"),
	})
	if err := l.AppendIndex(index, ref); err != nil {
		return err
	}
	var all []file
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			all = append(all, file{name: name + "/", mode: 0o755})
			return nil
		}
		content, err := os.ReadFile(path)
		all = append(all, file{name: name, mode: 0o644, content: content})
		return err
	})
	if err != nil {
		return err
	}
	packed, err := tarOf(all, at)
	if err != nil {
		return err
	}
	if out == "" {
		return errors.New("-o is missing")
	}
	return os.WriteFile(out, packed, 0o644)
}
