// Package queue keeps downloads that programs have ordered, and makes some of them at a time, each as `tributary get` does: over
// every link, into FILE.part until it is complete. It writes below one folder only, replaces no file, and gives names from servers
// and programs a harmless form.
//
// The list is in a file of the state folder, which is written before an order is confirmed and before the first byte of a download
// is. So after a restart, or kill -9, every download continues where its .part ends. A .part is known by its inode: what was
// complete by then is not fetched again, and files of others are left alone.
//
// One goroutine, Run, owns the list; all methods ask it. Each download that runs is one more, which Run waits for.
package queue
