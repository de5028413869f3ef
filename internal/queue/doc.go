// Package queue keeps downloads that programs have ordered, and runs some of them at a time, each as `tributary get` does: over all
// links, and into FILE.part until it is complete. It writes only inside one folder, never replaces a file, and makes names from
// servers and programs safe.
//
// The list is a file in the state folder, which is written before an order is confirmed and before the first byte of a download is
// written. So after a restart, or kill -9, every download continues where its .part ends. A .part is identified by its inode:
// complete files are not fetched again, and other files are left alone.
//
// One goroutine, Run, owns the list; all methods ask it. Each download that runs is one more, which Run waits for.
package queue
