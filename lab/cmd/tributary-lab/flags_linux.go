package main

import (
	"errors"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tributary-http/tributary/lab/netlab"
)

// The flags that several commands have mean the same everywhere.

// binaryFlag is the tributary to measure.
func binaryFlag(f *pflag.FlagSet, to *string) {
	f.StringVar(to, "binary", filepath.Join("bin", "tributary"), "tributary to measure")
}

// jsonFlag asks for JSON.
func jsonFlag(f *pflag.FlagSet, to *bool) {
	f.BoolVar(to, "json", false, "print JSON")
}

// sizeValue is the value of a flag: a number of bytes such as 50MB.
type sizeValue netlab.Bytes

// sizeFlag is a size. Its default must be one.
func sizeFlag(f *pflag.FlagSet, to *netlab.Bytes, value, usage string) {
	if err := (*sizeValue)(to).Set(value); err != nil {
		panic(err)
	}
	f.Var((*sizeValue)(to), "size", usage)
}

// Set implements pflag.Value.
func (s *sizeValue) Set(text string) error { return (*netlab.Bytes)(s).UnmarshalText([]byte(text)) }

// String implements pflag.Value.
func (s *sizeValue) String() string { return netlab.Bytes(*s).String() }

// Type implements pflag.Value.
func (*sizeValue) Type() string { return "size" }

// roundsValue is the value of a flag: 1 or more.
type roundsValue int

// roundsFlag is how often everything is measured.
func roundsFlag(f *pflag.FlagSet, to *int, value int) {
	*to = value
	f.Var((*roundsValue)(to), "rounds", "rounds")
}

// Set implements pflag.Value.
func (r *roundsValue) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return errors.New("want 1 or more")
	}
	*r = roundsValue(n)
	return nil
}

// String implements pflag.Value.
func (r *roundsValue) String() string { return strconv.Itoa(int(*r)) }

// Type implements pflag.Value.
func (*roundsValue) Type() string { return "int" }

// over returns the RunE of a command whose first argument is a scenario.
func over(run func(cmd *cobra.Command, sc netlab.Scenario) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		sc, err := load(args[0])
		if err != nil {
			return err
		}
		return run(cmd, sc)
	}
}
