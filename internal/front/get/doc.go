// Package get downloads one object to a file over an http.RoundTripper: `tributary get` uses it for each of its URLs.
//
// The RoundTripper of package transport delivers the bytes of one version over all links. This package is an HTTP
// client on top of it. It adds what a file needs: redirects, a name, a place for the incomplete file, and proof that it
// is the right file.
//
// Bytes are written to a file in order of arrival, so that none waits in memory for its turn. Other outputs get them in
// object order. Resuming and the checksum use the bytes from the beginning of the object without a gap.
//
// Until it is complete, a download is in FILE.part, and a claim (package partial) identifies the object and its
// version. FILE itself appears by one rename after the last byte is on the disk. A .part is resumed only if
//
//  1. its claim proves that Tributary wrote it, and names the same URL or another one of the order, or the user gave a
//     checksum;
//  2. redirects lead to the same place, or the user gave a checksum, and the version there is still the one that the
//     claim names, with the same strong validator and the same size;
//  3. its bytes are known to be there: those that the claim counts without a gap if they were written in this boot,
//     otherwise the ones that were synced;
//  4. it is a regular file of this user that no other user may write to.
//
// A .part without a claim may belong to anything, so it is neither used nor overwritten unless the user asks for it. A
// .part of another user is left alone even then. A lock on the .part prevents a second download from using it. A .part
// that has all bytes becomes the file only after the server confirmed that the version is still current, or the
// checksum proved it.
//
// Other users may have created a pipe, or a link to one, under the name of FILE. A pipe or a device gets the bytes only
// if the user named it and no other user created it or a link to it. These guarantees need the sticky bit on shared
// folders such as /tmp: without it, every user who may write to the folder can replace FILE at any time.
//
// Bytes are written before they are recorded, so that the claim is correct even if the process is killed.
//
// A Getter is safe for concurrent use. A download has one goroutine, and another one that syncs. Errors are of type
// *Error, with the cause, the exit code (Kind), and the next step for the user.
//
// Reasons: docs/decisions/get.md.
package get
