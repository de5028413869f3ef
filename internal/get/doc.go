// Package get downloads one object to a file over an http.RoundTripper: `tributary get` uses it for each of its URLs.
//
// The RoundTripper of package transport delivers the bytes of one version over all links. This package is an HTTP client on top
// of it and adds what a file needs: redirects, a name, a place for the incomplete file, and the proof that it is the right file.
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
// user is left alone even then. A lock on the .part prevents a second download from using it. A .part that has all bytes becomes
// the file only after the server confirmed that this is still the version, or after the checksum proved it.
//
// Other users may have created a pipe, or a link to one, under the name of FILE. A pipe or a device gets the bytes only if the
// user named it and no other user created it or a link to it. These guarantees need the sticky bit on shared folders such as
// /tmp: without it, everybody who may write to the folder can replace FILE at any time.
//
// Bytes are written before they are recorded, so that the sidecar is correct even if the process is killed.
//
// A Getter is safe for concurrent use. A download has one goroutine, and another one that syncs. Errors are *Error: the cause,
// the exit code (Kind), and the next step for the user.
package get
