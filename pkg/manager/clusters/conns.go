package clusters

import (
	"context"
	"errors"
	"net"
	"sync"
)

// errRetired is returned by a dial for credentials that were replaced.
var errRetired = errors.New("these credentials have been replaced")

// connections knows every open TCP connection to a worker, so that all of them can be closed at
// once. Closing them is the only way to end a watch whose other end has vanished without a word,
// and to make a watch that was opened with old credentials open again with new ones.
type connections struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)

	mu      sync.Mutex
	open    map[*trackedConn]struct{}
	retired bool
}

func newConnections(dialer *net.Dialer) *connections {
	return &connections{dial: dialer.DialContext, open: map[*trackedConn]struct{}{}}
}

// DialContext opens a connection, and remembers it until it's closed.
func (c *connections) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := c.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	tracked := &trackedConn{Conn: conn, owner: c}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.retired {
		return nil, errors.Join(errRetired, conn.Close())
	}
	c.open[tracked] = struct{}{}
	return tracked, nil
}

// closeAll closes the open connections; new ones may be opened.
func (c *connections) closeAll() {
	c.mu.Lock()
	open := c.open
	c.open = map[*trackedConn]struct{}{}
	c.mu.Unlock()
	for conn := range open {
		_ = conn.Conn.Close() // what it carried fails, which is the purpose
	}
}

// retire closes the open connections, and lets nobody open another.
func (c *connections) retire() {
	c.mu.Lock()
	c.retired = true
	c.mu.Unlock()
	c.closeAll()
}

func (c *connections) forget(conn *trackedConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, conn)
}

type trackedConn struct {
	net.Conn
	owner *connections
}

func (t *trackedConn) Close() error {
	t.owner.forget(t)
	return t.Conn.Close()
}
