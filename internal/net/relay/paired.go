package relay

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// SetInstalled records in a client's state file the ssh destination on which this client set up the relay at an
// address.
func SetInstalled(path, address, destination string) error {
	_, err := change(path, func(s *clientState) error {
		p, ok := s.Relays[address]
		if !ok {
			return fmt.Errorf("the relay %s was never paired", address)
		}
		p.Installed = destination
		s.Relays[address] = p
		return nil
	})
	return err
}

// Installed returns the addresses of the relays that a client set up on an ssh destination, in order.
func Installed(path, destination string) ([]string, error) {
	var s clientState
	if err := load(path, &s); err != nil {
		return nil, err
	}
	maps.DeleteFunc(s.Relays, func(_ string, p pairing) bool { return p.Installed != destination })
	return slices.Sorted(maps.Keys(s.Relays)), nil
}

// Paired returns the addresses of the relays that a client was paired with, in order.
func Paired(path string) ([]string, error) {
	var s clientState
	err := load(path, &s)
	return slices.Sorted(maps.Keys(s.Relays)), err
}

// OwnKey returns the key by which the relay at an address knows this client, "" if they are not paired.
func OwnKey(path, address string) (KeyID, error) {
	var s clientState
	if err := load(path, &s); err != nil {
		return "", err
	}
	p, ok := s.Relays[address]
	if !ok {
		return "", nil
	}
	return p.Key.ID(), nil
}

// Forget makes a client forget relays. If none are left, the file is removed, with its lock and its folder.
func Forget(path string, addresses ...string) error {
	if _, err := os.Stat(path); err != nil {
		return nil // no relay is known
	}
	s, err := change(path, func(s *clientState) error {
		for _, a := range addresses {
			delete(s.Relays, a)
		}
		return nil
	})
	if err != nil || len(s.Relays) > 0 {
		return err
	}
	if err := os.Remove(path); err != nil {
		return err
	}
	if err := os.Remove(path + ".lock"); err != nil {
		return err
	}
	_ = os.Remove(filepath.Dir(path)) // if nothing else is in it
	return nil
}
