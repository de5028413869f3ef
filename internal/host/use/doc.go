// Package use writes the gateway's address into the settings of other programs, and removes it again.
//
// A recipe for each program plans edits of its files; if possible, it creates a separate file in a folder that the
// program reads. A record keeps the old and the new content, so that undoing restores every file exactly or, if the
// file has changed since, removes exactly the lines that were added. Files and links of other users are never touched.
//
// Reasons: docs/decisions/ports.md.
package use
