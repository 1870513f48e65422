package rig

import (
	"errors"
	"net"
	"sync"
	"time"
)

// Proxy forwards TCP connections and can make the network between the two sides bad. TLS goes
// through it untouched. Faults hold for present and future connections until Heal; several can be
// combined.
type Proxy struct {
	listener net.Listener
	upstream string
	faults   *faultBox

	mu     sync.Mutex
	links  map[*link]struct{}
	closed bool
	tasks  sync.WaitGroup
}

// NewProxy listens on an address and forwards to another one, both host:port.
func NewProxy(listen, upstream string) (*Proxy, error) {
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: listener, upstream: upstream, faults: newFaultBox(), links: map[*link]struct{}{}}
	p.tasks.Go(p.accept)
	return p, nil
}

// Address is where the proxy listens, as host:port.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Latency delays data in both directions, each by this time: a round trip takes twice as much
// longer.
func (p *Proxy) Latency(each time.Duration) { p.faults.change(func(f *faults) { f.latency = each }) }

// Bandwidth limits each connection and direction to this many bytes in a second; 0 is no limit.
func (p *Proxy) Bandwidth(bytesPerSecond int) {
	p.faults.change(func(f *faults) { f.bytesPerSecond = bytesPerSecond })
}

// BlackHole lets no data through: new connections are accepted and never answered, present ones
// hang half-open, and neither side hears when the other closes. Data is held, not lost: after Heal
// it arrives, as TCP would send it again.
func (p *Proxy) BlackHole() { p.faults.change(func(f *faults) { f.blackHole = true }) }

// Reset breaks all present connections (RST), and each new one at once.
func (p *Proxy) Reset() {
	p.faults.change(func(f *faults) { f.reset = true })
	p.ResetOnce()
}

// ResetOnce breaks all present connections (RST); new ones work.
func (p *Proxy) ResetOnce() {
	for _, l := range p.snapshot() {
		l.reset()
	}
}

// HalfOpen has all present connections carry nothing any more, for ever, and look open to both
// sides: what is left when a firewall has forgotten them. New ones work. A side that closes its end
// is rid of it; Heal changes nothing.
func (p *Proxy) HalfOpen() {
	for _, l := range p.snapshot() {
		l.stall()
	}
}

// Heal removes all faults. Connections that survived them go on.
func (p *Proxy) Heal() { p.faults.change(func(f *faults) { *f = faults{} }) }

// Connections is the number of connections that are open now.
func (p *Proxy) Connections() int { return len(p.snapshot()) }

// Close stops listening, breaks all connections and returns when nothing of the proxy runs any
// more.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.listener.Close()
	p.ResetOnce()
	p.tasks.Wait()
}

func (p *Proxy) snapshot() []*link {
	p.mu.Lock()
	defer p.mu.Unlock()
	links := make([]*link, 0, len(p.links))
	for l := range p.links {
		links = append(links, l)
	}
	return links
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // such as a connection that was reset before we came to it
		}
		p.tasks.Go(func() { p.serve(client.(*net.TCPConn)) })
	}
}

// serve forwards one connection until both of its directions have ended.
func (p *Proxy) serve(client *net.TCPConn) {
	if now, _ := p.faults.read(); now.reset {
		abort(client)
		return
	}
	server, err := net.Dial("tcp", p.upstream)
	if err != nil {
		abort(client)
		return
	}
	l := newLink(client, server.(*net.TCPConn), p.faults)
	if !p.add(l) {
		l.reset()
		return
	}
	l.run()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// add registers a link, unless the proxy was closed meanwhile.
func (p *Proxy) add(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.links[l] = struct{}{}
	}
	return !p.closed
}
