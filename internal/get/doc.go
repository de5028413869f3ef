// Package get downloads one object to a file over an http.RoundTripper: `tributary get` uses it for each of its URLs.
//
// The RoundTripper of package transport brings the bytes, of one version, over all links. This package is an HTTP client on top
// of it and adds what a file needs beyond that: redirects, a name, a place for the incomplete file, and the proof that it is
// the wanted file.
//
// Files are written in the order in which bytes arrive, so that none waits in memory for its turn; other outputs get them in
// order. Resuming and the checksum use the part from the beginning of the object without a gap.
//
// Until it is complete a download is in FILE.part, and FILE.part.json (the sidecar) says which object and which version it
// is. FILE itself appears by one rename after the last byte is on the disk. A .part is resumed only if
//
//  1. its sidecar names the same URL, or the user gave a checksum;
//  2. redirects lead to the same place, or the user gave a checksum, and the version there is still the one that the sidecar
//     names: same strong validator, same size;
//  3. its bytes are known to be there: those that the sidecar records without a gap, if they were written since this boot, otherwise
//     those of them that were synced before;
//  4. both are regular files of this user that nobody else may write to.
//
// A .part without a sidecar may be anybody's, so it is neither used nor overwritten unless the user says so. One of another
// user is left alone even then. A lock on the .part keeps a second download away from it. A .part that has all bytes
// becomes the file only after the server said that this is still the version, or after the checksum proved it.
//
// Where FILE is to be, other users may have put a pipe, or a link to one. A pipe or a device gets the bytes only if the user
// gave its name and no other user made it or a link to it. All this holds in folders with the sticky bit, such as /tmp:
// without it, everybody who may write to the folder can replace FILE, too, at any time.
//
// Bytes are written first and recorded then, so that a process that is killed leaves a sidecar that is true.
//
// A Getter is safe for concurrent use; a download is one goroutine, and one more that syncs. Errors are *Error: the cause, the
// exit code (Kind), and a hint for the user.
package get
