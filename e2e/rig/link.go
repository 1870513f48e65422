package rig

import (
	"net"
	"sync"
	"time"
)

// faults are what is wrong with the network now. The zero value is a network that works.
type faults struct {
	latency        time.Duration
	bytesPerSecond int
	blackHole      bool
	reset          bool
}

// faultBox holds the faults and tells those who wait when they change.
type faultBox struct {
	mu      sync.Mutex
	now     faults
	changed chan struct{}
}

func newFaultBox() *faultBox { return &faultBox{changed: make(chan struct{})} }

// read returns the faults, and a channel that is closed at their next change.
func (b *faultBox) read() (faults, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now, b.changed
}

func (b *faultBox) change(edit func(*faults)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	edit(&b.now)
	close(b.changed)
	b.changed = make(chan struct{})
}

// link is one connection through the proxy: two sockets, and a pump for each direction.
type link struct {
	client, server *net.TCPConn
	faults         *faultBox
	broken         chan struct{}
	breakOnce      sync.Once
	stalled        chan struct{} // closed when nothing is carried any more
	stallOnce      sync.Once
}

func newLink(client, server *net.TCPConn, f *faultBox) *link {
	return &link{
		client: client, server: server, faults: f, broken: make(chan struct{}), stalled: make(chan struct{}),
	}
}

func (l *link) run() {
	var pumps sync.WaitGroup
	pumps.Go(func() { l.pump(l.client, l.server) })
	pumps.Go(func() { l.pump(l.server, l.client) })
	pumps.Wait()
	l.client.Close()
	l.server.Close()
}

// reset ends the link at once, with an RST to both sides.
func (l *link) reset() {
	l.breakOnce.Do(func() {
		close(l.broken)
		abort(l.client)
		abort(l.server)
	})
}

// stall has the link carry nothing any more, until one side closes its end.
func (l *link) stall() { l.stallOnce.Do(func() { close(l.stalled) }) }

func (l *link) isStalled() bool {
	select {
	case <-l.stalled:
		return true
	default:
		return false
	}
}

// abort closes a connection without the usual farewell: the peer sees a reset.
func abort(conn *net.TCPConn) {
	_ = conn.SetLinger(0) // fails only on a connection that is closed already
	conn.Close()
}

// chunk is data on its way, or, with nil data, the end of the stream.
type chunk struct {
	data    []byte
	arrived time.Time
}

// inFlight is how many chunks the network holds of one direction; then the sender has to wait.
const inFlight = 64

// pump carries one direction: a reader takes data off one socket, the writer brings it to the other
// when the faults allow it. The end of the stream travels like data, so a black hole hides it, too.
func (l *link) pump(from, to *net.TCPConn) {
	chunks := make(chan chunk, inFlight)
	var reader sync.WaitGroup
	reader.Go(func() { l.read(from, chunks) })
	defer reader.Wait()
	for c := range chunks {
		if !l.delay(c) {
			return
		}
		if c.data == nil {
			_ = to.CloseWrite() // the peer may be gone by now
			return
		}
		if _, err := to.Write(c.data); err != nil {
			l.reset()
			return
		}
	}
}

func (l *link) read(from *net.TCPConn, chunks chan<- chunk) {
	defer close(chunks)
	for {
		buffer := make([]byte, 16*1024)
		n, err := from.Read(buffer)
		if n > 0 && !l.isStalled() && !l.send(chunks, chunk{buffer[:n], time.Now()}) {
			return
		}
		if err != nil && l.isStalled() {
			l.reset() // there is nobody left to look open to
			return
		}
		if err != nil {
			l.send(chunks, chunk{nil, time.Now()})
			return
		}
	}
}

func (l *link) send(chunks chan<- chunk, c chunk) bool {
	select {
	case chunks <- c:
		return true
	case <-l.broken:
		return false
	}
}

// delay holds a chunk back for as long as the faults demand; they may change meanwhile. It is false
// when the link broke.
func (l *link) delay(c chunk) bool {
	began := time.Now()
	for {
		now, changed := l.faults.read()
		due := c.arrived.Add(now.latency)
		if now.bytesPerSecond > 0 {
			transfer := time.Duration(len(c.data)) * time.Second / time.Duration(now.bytesPerSecond)
			due = later(due, began.Add(transfer))
		}
		left := time.Until(due)
		if l.isStalled() {
			<-l.broken
			return false
		}
		if left <= 0 && !now.blackHole {
			return true
		}
		var timer <-chan time.Time // never fires in a black hole
		if !now.blackHole {
			timer = time.After(left)
		}
		select {
		case <-timer:
		case <-changed:
		case <-l.stalled:
		case <-l.broken:
			return false
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
