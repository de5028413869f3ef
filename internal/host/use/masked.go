package use

import "regexp"

var password = regexp.MustCompile(`(://[^/\s:@]*:)[^/\s@]+@`)

// masked returns a text for display, without the passwords in its URLs.
func masked(s string) string { return password.ReplaceAllString(s, "${1}***@") }
