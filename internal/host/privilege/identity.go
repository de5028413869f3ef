package privilege

import (
	"errors"
	"fmt"
	"os/user"
	"strconv"
	"strings"
)

// ErrAccount means that there is no such account, or that a program cannot run as it.
var ErrAccount = errors.New("user")

// identity holds the IDs of a process, and the variables of its environment that describe the user.
type identity struct {
	uid, gid   int
	groups     []int
	name, home string
}

// find returns the identity of an account. A number need not have an account: then it is also used as the group.
func find(account string) (identity, error) {
	u, err := user.Lookup(account)
	if err != nil {
		uid, notNumber := strconv.ParseInt(account, 10, 31)
		if notNumber != nil || uid < 0 {
			return identity{}, fmt.Errorf("%w %q: want the name or the ID of a user of this machine", ErrAccount,
				account)
		}
		if u, err = user.LookupId(account); err != nil {
			u = &user.User{Uid: account, Gid: account, Username: account, HomeDir: "/"}
		}
	}
	to := identity{name: u.Username, home: u.HomeDir}
	if to.uid, err = strconv.Atoi(u.Uid); err != nil {
		return identity{}, fmt.Errorf("%w %q: its number: %w", ErrAccount, account, err)
	}
	if to.uid == 0 {
		return identity{}, fmt.Errorf("%w %q: root keeps all privileges; choose another user", ErrAccount, account)
	}
	if to.gid, err = strconv.Atoi(u.Gid); err != nil {
		return identity{}, fmt.Errorf("%w %q: the number of its group: %w", ErrAccount, account, err)
	}
	if ids, err := u.GroupIds(); err == nil { // a number without an account has none
		for _, id := range ids {
			if gid, err := strconv.Atoi(id); err == nil {
				to.groups = append(to.groups, gid)
			}
		}
	}
	to.groups = append(to.groups, networkGroups...)
	return to, nil
}

// environ returns the environment with the identity's home in place of the previous user's folders.
func (to identity) environ(from []string) []string {
	env := []string{"HOME=" + to.home, "USER=" + to.name, "LOGNAME=" + to.name}
	for _, e := range from {
		switch name, _, _ := strings.Cut(e, "="); {
		case name == "HOME", name == "USER", name == "LOGNAME", strings.HasPrefix(name, "XDG_"):
		default:
			env = append(env, e)
		}
	}
	return env
}
