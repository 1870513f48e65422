package intervals

import (
	"strings"
	"sync"
)

// The text of a large Job is read again and again: by each shard, rule and step of a reconcile. A
// long one is kept with what it says, until such texts take maxKept bytes: then those go that
// weren't read of late.
const (
	longText = 4 << 10
	maxKept  = 32 << 20
)

// question is how a text is read, and reading the answer. Nobody changes the intervals of a Set.
type (
	question struct {
		text    string
		lenient bool
	}
	reading struct {
		set Set
		err error
	}
)

// memo keeps readings in two halves: what is read moves to the recent one, and when that is full,
// the older one goes. Its zero value is empty.
type memo struct {
	mu            sync.Mutex
	recent, older map[question]reading
	// bytes are those of the recent half.
	bytes int
}

var kept memo

// read answers a question by parse, unless the answer is known.
func (m *memo) read(q question, parse func(string) (Set, error)) (Set, error) {
	if len(q.text) < longText {
		return parse(q.text)
	}
	r, is := m.get(q)
	if !is {
		r.set, r.err = parse(q.text)
		q.text = strings.Clone(q.text) // it may be part of a longer one
		m.put(q, r)
	}
	return r.set, r.err
}

func (m *memo) get(q question) (r reading, is bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r, is = m.recent[q]; is {
		return r, true
	}
	if r, is = m.older[q]; is {
		delete(m.older, q)
		m.putLocked(q, r)
	}
	return r, is
}

func (m *memo) put(q question, r reading) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.putLocked(q, r)
}

// putLocked keeps nothing that takes more than a half.
func (m *memo) putLocked(q question, r reading) {
	const half, interval = maxKept / 2, 16
	size := len(q.text) + interval*cap(r.set)
	if size > half {
		return
	}
	if m.bytes += size; m.recent == nil || m.bytes > half {
		m.recent, m.older, m.bytes = map[question]reading{}, m.recent, size
	}
	m.recent[q] = r
}
