package rig

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// Listening ports are taken below the range that outgoing connections get theirs from (32768 and up
// on Linux): above, a connection may hold the port at the moment a component starts.
const (
	lowestPort  = 20000
	highestPort = 32767
)

// Listen takes a free TCP port on loopback, which a test itself serves. A component of a cluster
// has reserved its own, and isn't in the way.
func Listen() (net.Listener, error) {
	p, listener, err := listenOnFreePort()
	if err != nil {
		return nil, err
	}
	p.Release()
	return listener, nil
}

// given are the ports of FreeAddress. They stay reserved while this process runs: whoever is to
// listen there may begin at any time.
var given sync.Map

// FreeAddress is one on loopback that nobody listens on, for a process that is about to.
func FreeAddress() (string, error) {
	p, err := reservePort()
	if err != nil {
		return "", err
	}
	given.Store(p, true)
	return p.Address(), nil
}

// port is a free TCP port on loopback. It is reserved among all processes that use the rig by
// holding the UDP port of the same number: TCP stays free for the component, and the kernel gives
// the reservation back in any case.
type port struct {
	Number      int
	reservation net.PacketConn
	release     sync.Once
}

func reservePort() (*port, error) {
	p, listener, err := listenOnFreePort()
	if err != nil {
		return nil, err
	}
	listener.Close()
	return p, nil
}

// listenOnFreePort reserves a port, and listens there.
func listenOnFreePort() (*port, net.Listener, error) {
	for range 1000 {
		p := &port{Number: lowestPort + rand.IntN(highestPort-lowestPort+1)}
		reservation, err := net.ListenPacket("udp4", p.Address())
		if err != nil {
			continue
		}
		if listener, err := net.Listen("tcp4", p.Address()); err == nil {
			p.reservation = reservation
			return p, listener, nil
		}
		reservation.Close()
	}
	return nil, nil, errors.New("no free port on loopback")
}

// Address is the port on loopback, as host:port.
func (p *port) Address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.Number)) }

func (p *port) Release() { p.release.Do(func() { p.reservation.Close() }) }
