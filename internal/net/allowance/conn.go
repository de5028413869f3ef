package allowance

import (
	"github.com/tributary-http/tributary/internal/net/conn"
)

// counted is a connection whose bytes are counted. It is a gate of the connection.
type counted struct {
	conn     *conn.Conn
	accounts *Accounts
	account  *account
	closed   chan struct{}

	// mu of the Accounts guards these.
	read   int64 // bytes
	asked  bool  // something was written: there may be an answer
	buffer int64 // size of the receive buffer while it is fixed, otherwise 0
	hold   int64 // bytes reserved for the receive buffer
}

// largest is the maximum number of bytes read or written at once.
const largest = 32 << 10

// part returns how many bytes may be read or written at once. A read or write under way when an account runs empty
// exceeds the account by up to part, so part is included in the reservation.
func (c *counted) part() int64 {
	if c.buffer > 0 {
		return min(largest, c.buffer/4)
	}
	return largest
}

// Pass implements conn.Gate: it waits until the account has something to spend.
func (c *counted) Pass(_ bool, n int) (int, error) {
	left, err := c.accounts.wait(c)
	return int(min(int64(n), max(1, left*100/overhead))), err
}

// Moved implements conn.Gate.
func (c *counted) Moved(read, written int) { c.accounts.count(c, read, written) }

// leave ends the counting before the connection closes.
func (c *counted) leave() {
	close(c.closed)
	c.accounts.leave(c)
}
