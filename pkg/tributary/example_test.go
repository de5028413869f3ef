package tributary_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"

	"github.com/tributary-http/tributary/pkg/tributary"
)

func ExampleTransport() {
	t, err := tributary.New(tributary.Options{Links: os.Args[2:]}) // none named: every link that leads out
	if err != nil {
		log.Fatal(err)
	}
	defer t.Close()
	client := &http.Client{Transport: t}
	resp, err := client.Get(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(os.Stdout, resp.Body); err != nil {
		log.Fatal(err)
	}
}

func ExampleTransport_Download() {
	t, err := tributary.New(tributary.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer t.Close()
	file, err := os.Create("big.iso")
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	req, err := http.NewRequest(http.MethodGet, "https://example.com/big.iso", nil)
	if err != nil {
		log.Fatal(err)
	}
	_, n, err := t.Download(context.Background(), req, file)
	if errors.Is(err, tributary.ErrChanged) {
		log.Fatal("somebody replaced the file on the server: try again")
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(n, "bytes")
}

func ExampleWithReport() {
	t, err := tributary.New(tributary.Options{Links: []string{"wlan0", "wwan0"}})
	if err != nil {
		log.Fatal(err)
	}
	defer t.Close()
	var report tributary.Report
	ctx := tributary.WithReport(context.Background(), &report)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://example.com/big.iso", nil)
	if err != nil {
		log.Fatal(err)
	}
	resp, err := t.RoundTrip(req)
	if err != nil {
		log.Fatal(err)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	for _, l := range report.Links() {
		fmt.Printf("%s: %d bytes, %d of them wasted\n", l.Link, l.Received, l.Wasted)
	}
	if reason := report.Undivided(); reason != "" {
		fmt.Println("not divided:", reason)
	}
	if err != nil {
		log.Fatal(err)
	}
}
