package docs

import (
	"errors"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

var quoted = regexp.MustCompile(`"[^"]*"|'[^']*'`)

// Invocations returns the arguments of each call of a program in a shell command line.
func Invocations(line, program string) (all [][]string) {
	line = quoted.ReplaceAllStringFunc(line,
		func(s string) string { return strings.ReplaceAll(s[1:len(s)-1], " ", "\x00") })
	if before, _, ok := strings.Cut(line, " #"); ok {
		line = before
	}
	call := regexp.MustCompile(`(?:^|[|(;&] *|sudo |env |-- )(?:[A-Z_]+=\S+ )*(?:\S*bin/)?` + program + ` ([^|;&)]*)`)
	for _, m := range call.FindAllStringSubmatch(line, -1) {
		before, _, _ := strings.Cut(m[1], " >")
		var args []string
		for _, a := range strings.Fields(before) {
			if a == "..." { // and so on
				continue
			}
			args = append(args, strings.ReplaceAll(a, "\x00", " "))
		}
		all = append(all, args)
	}
	return all
}

// placeholders replaces the placeholders in examples with valid values.
var placeholders = strings.NewReplacer("sha256:HEX", "sha256:"+strings.Repeat("0", 64))

// Accepts parses arguments like a command line, without running the command: the error says which command, flag, value
// or number of arguments is wrong. Unless whole is true, arguments may be missing.
func Accepts(root *cobra.Command, args []string, whole bool) error {
	root.InitDefaultHelpCmd()
	for i := range args {
		args[i] = placeholders.Replace(args[i])
	}
	command, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	command.InitDefaultHelpFlag()
	if err := command.ParseFlags(rest); err != nil {
		return err
	}
	if help, err := command.Flags().GetBool("help"); !whole || err == nil && help {
		return nil
	}
	if command.HasSubCommands() && !command.Runnable() {
		return errors.New(command.CommandPath() + " needs a command")
	}
	return command.ValidateArgs(command.Flags().Args())
}
