package rpc

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"

	"golang.org/x/sys/unix"

	"github.com/tributary-http/tributary/internal/host/statefile"
)

// tokenForm is the form of a token. A user may choose one: it is the only line of the file.
var tokenForm = regexp.MustCompile(`^[!-~]{16,256}$`)

// Token returns the token in a file of the user. It creates the file if there is none.
func Token(ctx context.Context, path string) (string, error) {
	if err := statefile.Own(path); err != nil {
		return "", fmt.Errorf("the token for RPC: %w", err)
	}
	unlock, err := statefile.Lock(ctx, path)
	if err != nil {
		return "", fmt.Errorf("the token for RPC: %w", err)
	}
	defer unlock()
	text, err := statefile.Read(path, 1<<10)
	if errors.Is(err, fs.ErrNotExist) {
		var b [20]byte
		rand.Read(b[:]) // never fails
		text = []byte(hex.EncodeToString(b[:]) + "\n")
		err = statefile.Replace(path, text)
	}
	if err != nil {
		return "", fmt.Errorf("the token for RPC: %w", err)
	}
	return parseToken(text, path)
}

// ReadToken returns the token in a file of another user, for root.
func ReadToken(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", fmt.Errorf("the token for RPC: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 1<<10))
	if err != nil {
		return "", fmt.Errorf("the token for RPC: %w", err)
	}
	return parseToken(text, path)
}

func parseToken(text []byte, path string) (string, error) {
	token := string(text[:max(len(text)-1, 0)])
	if !tokenForm.MatchString(token) {
		return "", fmt.Errorf("%s does not contain a token (one line of 16 to 256 letters and digits): delete it to get a new one", path)
	}
	return token, nil
}
