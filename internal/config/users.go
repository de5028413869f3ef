package config

import (
	"errors"
	"fmt"
	"os/user"
	"strconv"
)

// everybody stands for all users in AllowUsers.
const everybody = "all"

const notAUser = `%q is not a user of this machine: write a name, a number or "all"`

// Users returns the IDs of the users who may use the proxy if the user self runs it, or nil if all users may. The error
// lists every entry of AllowUsers that is not a user of this machine, one per line.
func (c Config) Users(self int) ([]uint32, error) {
	uids := []uint32{0, uint32(self)}
	var errs []error
	all := false
	for _, name := range c.AllowUsers {
		if name == everybody {
			all = true
			continue
		}
		uid, err := lookUp(name)
		if err != nil {
			errs = append(errs, fmt.Errorf("allow_users: "+notAUser, name))
			continue
		}
		uids = append(uids, uid)
	}
	if all {
		uids = nil
	}
	return uids, errors.Join(errs...)
}

// lookUp returns the ID of a user by name or number; a number need not have a name.
func lookUp(name string) (uint32, error) {
	text := name
	if u, err := user.Lookup(name); err == nil {
		text = u.Uid
	}
	uid, err := strconv.ParseUint(text, 10, 32)
	return uint32(uid), err
}
