package privilege

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// secure are the folders in which sudo looks for programs unless its configuration says otherwise (secure_path).
var secure = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// Sudo returns the command line that runs this program as root: with its path if sudo would not find it.
func Sudo(args string) string {
	self, err := os.Executable()
	if err != nil {
		self = ""
	}
	return sudo(self, args)
}

func sudo(self, args string) string {
	name := "tributary"
	if self != "" && !slices.Contains(secure, filepath.Dir(self)) {
		name = self
		if strings.ContainsAny(name, " '\"$`\\") {
			name = "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
		}
	}
	return "sudo " + name + " " + args
}
