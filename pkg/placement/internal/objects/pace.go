package objects

import (
	"time"

	"github.com/jobferry/jobferry/pkg/placement/internal/change"
)

// What takes longer than quick to be made of a worker's objects stays as it is for nine times as
// long, whatever changes. It's made while others wait, so a worker whose objects change all the
// time would else keep Jobs from being placed anywhere.
const (
	quick = time.Millisecond
	rests = 9
)

// pace is that of one thing that is made.
type pace struct {
	// until is when a change is taken notice of, at the earliest, and waits: there is one.
	until time.Time
	waits bool
}

// isDue reports whether it's time to look at what no change tells of. A change that waits goes
// first.
func (p *pace) isDue(now time.Time) bool { return !p.waits && !now.Before(p.until) }

// PaceBy sets the clock, before the Store is used. Without one nothing is known to take long.
func (s *Store) PaceBy(now func() time.Time, after func(time.Duration, func())) {
	s.now, s.after = now, after
}

// timed makes something, with the lock held.
func (s *Store) timed(p *pace, do func()) {
	began := s.now()
	do()
	ended := s.now()
	if took := ended.Sub(began); took > quick {
		from := p.until
		if ended.After(from) {
			from = ended
		}
		p.until = from.Add(rests * took)
	}
}

// changedIn is changed at the pace of what is made of the objects: who awaits the change isn't told
// before it can be read.
func (s *Store) changedIn(p *pace, c change.Change, forget func()) {
	s.lock.Lock()
	wait := p.until.Sub(s.now())
	isFirst := wait > 0 && !p.waits
	p.waits = p.waits || isFirst
	s.lock.Unlock()
	if isFirst {
		s.after(wait, func() {
			s.lock.Lock()
			p.waits = false
			s.lock.Unlock()
			s.changedIn(p, c, forget)
		})
	}
	if wait <= 0 {
		s.changed(c, forget)
	}
}
