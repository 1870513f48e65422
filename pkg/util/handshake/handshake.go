// Package handshake bounds what the other end of a TLS connection may send before the handshake is
// over: Go reads certificates of 256 KiB, which become many times as much in memory, are kept with
// the connection, and take long to verify.
package handshake

import (
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
)

// Bounds of a handshake. Certificates of API servers with their authorities have some KiB.
const (
	maxClient       = 16 << 10 // for a client's hello, and again for its certificates
	maxServer       = 32 << 10
	maxCertificates = 6
	maxNames        = 1000 // in all of a server's
	maxClientNames  = 100
)

var errTooLarge = errors.New("the TLS handshake is too large, such as its certificates")

// Conn is a connection that bounds the handshake.
type Conn struct {
	net.Conn
	isBounded atomic.Bool
	left      atomic.Int64 // while it is
}

// AwaitHello is called before the other end, a client, sends anything.
func (c *Conn) AwaitHello() { c.begin(maxClient) }

// Begin is called before the other end, a server, sends anything.
func (c *Conn) Begin() { c.begin(maxServer) }

func (c *Conn) begin(most int64) {
	c.left.Store(most)
	c.isBounded.Store(true)
}

// End is called when the handshake is over.
func (c *Conn) End() { c.isBounded.Store(false) }

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	if !c.isBounded.Load() {
		return c.Conn.Read(p)
	}
	left := c.left.Load()
	if left <= 0 {
		return 0, errTooLarge
	}
	n, err := c.Conn.Read(p[:min(int64(len(p)), left)])
	c.left.Add(-int64(n))
	return n, err
}

// Verify is for tls.Config.VerifyConnection of a client.
func Verify(state tls.ConnectionState) error { return verify(state, maxNames) } //nolint:gocritic // crypto/tls passes it so

func verify(state tls.ConnectionState, most int) error { //nolint:gocritic // likewise
	names := 0
	for _, c := range state.PeerCertificates {
		names += len(c.DNSNames) + len(c.URIs) + len(c.EmailAddresses) + len(c.IPAddresses)
	}
	if len(state.PeerCertificates) > maxCertificates || names > most {
		return errTooLarge
	}
	return nil
}

// BoundClients sets GetConfigForClient, so that the handshakes of a server's clients are bounded,
// whose connections are a Conn, or have one embedded.
func BoundClients(config *tls.Config) {
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		c, is := hello.Conn.(interface {
			AwaitHello()
			End()
		})
		if !is {
			return nil, nil //nolint:nilnil // the configuration stays as it is
		}
		c.AwaitHello() // as much for its certificates
		bounded := config.Clone()
		bounded.GetConfigForClient = nil
		bounded.VerifyConnection = func(state tls.ConnectionState) error {
			c.End()
			return verify(state, maxClientNames)
		}
		return bounded, nil
	}
}
