// Package tributary sends HTTP requests over every network link of a machine at once: Wi-Fi, LTE, Ethernet, a second modem.
//
// A [Transport] is an [http.RoundTripper]. A large GET becomes a transfer: disjoint ranges of the object are fetched on
// connections that are each bound to one link, and the response's Body gives their bytes in order. When a link slows down or
// dies, the transfer continues over the others at the byte where it stopped. The server has to support range requests; if it
// does not, or if the request is not a GET that can be divided, the request goes over one link as it is.
//
//	t, err := tributary.New(tributary.Options{})
//	if err != nil {
//		return err
//	}
//	defer t.Close()
//	client := &http.Client{Transport: t}
//	resp, err := client.Get("https://example.com/big.iso")
//
// Bytes that arrive before their turn wait in memory, which [Options.Memory] bounds. [Transport.Download] writes to an
// [io.WriterAt], such as a file, in the order in which bytes arrive, and needs no such memory.
//
// Every response's content is that of one version of the object, as its validators tell, or reading it fails. Names are
// resolved on the link that carries the request, and certificates are verified on each.
//
// Binding a socket to a link takes no privilege from Linux 5.7 on; before, CAP_NET_RAW.
package tributary
