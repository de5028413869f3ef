package cli

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/front/get"
)

// readURLs returns the URLs in a file, one on each line. Empty lines and those that begin with # do not count.
func readURLs(file string, stdin io.Reader) (urls []string, err error) {
	from := stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, fmt.Errorf("-i: %w", err)
		}
		defer f.Close()
		from = f
	}
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		if s := strings.TrimSpace(lines.Text()); s != "" && !strings.HasPrefix(s, "#") {
			urls = append(urls, s)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("-i %s: %w", file, err)
	}
	if len(urls) == 0 {
		return nil, fmt.Errorf("-i %s: there is no URL in it", file)
	}
	return urls, nil
}

// distinct fails if two URLs would be saved under the same name.
func distinct(urls []string) error {
	by := map[string]string{}
	for _, u := range urls {
		name, err := get.NameOf(u)
		if err != nil { // the download says so
			continue
		}
		if other, ok := by[name]; ok {
			return fmt.Errorf("%s and %s would both be saved as %s: download one of them with -o", redacted(other),
				redacted(u), name)
		}
		by[name] = u
	}
	return nil
}

// limitRate reads a rate as in the configuration, or in bytes per second with K, M or G as for curl.
func limitRate(s string) (perSecond float64, err error) {
	var rate config.Rate
	if err := rate.UnmarshalText([]byte(s)); err == nil && rate > 0 {
		return float64(rate), nil
	}
	number, unit := strings.TrimRight(s, "kKmMgG"), 1.0
	switch strings.ToUpper(s[len(number):]) {
	case "K":
		unit = 1 << 10
	case "M":
		unit = 1 << 20
	case "G":
		unit = 1 << 30
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !(n > 0) || len(s)-len(number) > 1 || n*unit > 1e12 {
		return 0, fmt.Errorf("--limit-rate %q: want a rate like 20Mbit/s, or 2M bytes per second", s)
	}
	return n * unit, nil
}
