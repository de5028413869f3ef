package redirect

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// runner runs a program with an input and returns its output; the error contains the output.
type runner func(ctx context.Context, input, name string, args ...string) (string, error)

// firewall is one way to install rules.
type firewall interface {
	name() string
	add(context.Context, Rules) (Installed, error) // replaces existing rules
	remove(context.Context) error                  // not an error if there is nothing to remove
	find(context.Context) (Installed, error)
}

// ErrNoFirewall means that this machine has no program to change the firewall.
var ErrNoFirewall = errors.New("neither nft nor iptables is installed: run apt-get install nftables")

func execute(ctx context.Context, input, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = strings.NewReader(input)
	var out, said strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(said.String()))
	}
	return out.String(), nil
}

// firewalls returns the firewalls of this machine, the preferred one first.
func firewalls() []firewall {
	var all []firewall
	if _, err := exec.LookPath("nft"); err == nil {
		all = append(all, nftables{execute})
	}
	if _, err := exec.LookPath("iptables"); err == nil {
		all = append(all, iptables{execute})
	}
	return all
}

// On installs rules in place of existing ones. It uses nftables if that works, otherwise iptables.
func On(ctx context.Context, r Rules) (Installed, error) {
	if err := r.Check(); err != nil {
		return Installed{}, err
	}
	return on(ctx, firewalls(), r)
}

func on(ctx context.Context, all []firewall, r Rules) (Installed, error) {
	errs := []error{}
	for i, f := range all {
		in, err := f.add(ctx, r)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for k, other := range all { // rules from an earlier call
			if k != i {
				errs = append(errs, other.remove(ctx))
			}
		}
		if i > 0 {
			errs = nil // the preferred one does not work here
		}
		return in, errors.Join(errs...)
	}
	if len(all) == 0 {
		return Installed{}, ErrNoFirewall
	}
	return Installed{}, errors.Join(errs...)
}

// Off removes the rules, if there are any.
func Off(ctx context.Context) error { return off(ctx, firewalls()) }

func off(ctx context.Context, all []firewall) error {
	var errs []error
	for _, f := range all {
		errs = append(errs, f.remove(ctx))
	}
	return errors.Join(errs...)
}

// Find returns the rules in force.
func Find(ctx context.Context) (Installed, error) { return find(ctx, firewalls()) }

func find(ctx context.Context, all []firewall) (Installed, error) {
	var errs []error
	for _, f := range all {
		in, err := f.find(ctx)
		if err == nil && in.By != "" {
			return in, nil
		}
		errs = append(errs, err)
	}
	return Installed{}, errors.Join(errs...)
}
