// Package use puts the gateway's addresses into the settings of other programs, and takes them out again.
//
// A recipe for each program plans edits of its files: where it can, a file of Tributary's own in a folder that the program reads. A
// record keeps what was written and what was there before, so that undoing gives every file back byte for byte, or, where somebody
// has changed it since, removes exactly the lines that were added. Files and links of other users are never touched.
package use
