// Package queue keeps downloads that programs have ordered, and runs a limited number of them concurrently, each as
// `tributary get` does: over all links, and into FILE.part until it is complete. It writes only inside one folder,
// never replaces a file, and makes names from servers and programs safe.
//
// The list is a file in the state folder. It is written before an order is confirmed and before the first byte of a
// download is written, so after a restart, or kill -9, every download continues where its .part ends. A .part is
// identified by its inode: complete files are not fetched again, and other files are left alone.
//
// One goroutine, Run, owns the list; all methods ask it. Each running download has a goroutine, which Run waits for.
package queue
