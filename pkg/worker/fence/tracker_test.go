package fence

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

const (
	lasts   = 40 * time.Second
	after   = 5 * time.Minute
	timeout = 15 * time.Minute
)

// scene is a Tracker with a clock that the test moves. Its own API server answers unless it's away.
type scene struct {
	*Tracker
	now      time.Time
	away     bool
	ahead    time.Duration // of the hub's clock
	renewed  map[v1alpha1.Origin]time.Time
	renewals map[v1alpha1.Origin]int
	released map[v1alpha1.Origin]bool
	version  int
}

func newScene() *scene {
	return &scene{Tracker: NewTracker(after), now: noon, renewals: map[v1alpha1.Origin]int{}, renewed: map[v1alpha1.Origin]time.Time{}, released: map[v1alpha1.Origin]bool{}, version: 100}
}

func (s *scene) lease(origin v1alpha1.Origin) Lease {
	s.version++
	return Lease{Origin: origin, Released: s.released[origin], Renewal: fmt.Sprint(s.renewals[origin]), Renewed: s.renewed[origin], Version: fmt.Sprint(s.version), Duration: lasts, LostTimeout: timeout}
}

func (s *scene) renew(origin v1alpha1.Origin) {
	s.renewals[origin]++
	s.renewed[origin] = s.now.Add(s.ahead)
	s.Observe(s.lease(origin), s.now)
}

// release is what a hub writes last.
func (s *scene) release(origin v1alpha1.Origin) {
	s.released[origin] = true
	s.renew(origin)
}

// restart is a site without power: for some time there's no controller, and the new one has seen
// nothing but what is in the Lease of "a".
func (s *scene) restart(dark time.Duration) {
	s.now = s.now.Add(dark)
	s.Tracker = NewTracker(after)
	s.Observe(s.lease("a"), s.now)
}

// wait lets time pass as the shell does: it acts whenever the Tracker is due.
func (s *scene) wait(d time.Duration) {
	end := s.now.Add(d)
	for {
		if s.NeedsProbe(s.now) {
			s.ObserveProbe(!s.away, s.now)
		}
		_, next := s.CloseDue(s.now)
		if next == 0 || s.now.Add(next).After(end) {
			s.now = end
			return
		}
		s.now = s.now.Add(next)
	}
}

// closes is when, after now, the origin's fence closes; at most that long.
func (s *scene) closes(origin v1alpha1.Origin, most time.Duration) time.Duration {
	began := s.now
	for s.now.Sub(began) <= most {
		s.wait(time.Second)
		s.wait(0)
		if s.Closed(origin) {
			return s.now.Sub(began)
		}
	}
	return 0
}

func TestWhenTheFenceCloses(t *testing.T) {
	rows := map[string]struct {
		story func(*scene)
		want  time.Duration // from the end of the story; zero: not within half an hour
	}{
		"never observed":           {func(*scene) {}, 0},
		"renewed once":             {func(s *scene) { s.renew("a") }, lasts + after},
		"renewed later":            {func(s *scene) { s.renew("a"); s.wait(3 * time.Minute); s.renew("a") }, lasts + after},
		"written, but not renewed": {func(s *scene) { s.renew("a"); s.wait(time.Minute); s.Observe(s.lease("a"), s.now) }, lasts + after - time.Minute},
		"observed out of order": {func(s *scene) {
			s.renew("a")
			s.wait(time.Minute)
			s.Observe(Lease{Origin: "a", Renewal: "0", Version: "50"}, s.now)
		}, lasts + after - time.Minute},
		"the Lease is gone":              {func(s *scene) { s.renew("a"); s.wait(time.Minute); s.ObserveDeleted("a") }, lasts + after - time.Minute},
		"gone, and listed as gone again": {func(s *scene) { s.renew("a"); s.ObserveDeleted("a"); s.wait(time.Minute); s.ObserveDeleted("a") }, lasts + after - time.Minute},
		"gone, and made again, empty": {func(s *scene) {
			s.renew("a")
			s.ObserveDeleted("a")
			s.wait(time.Minute)
			s.Observe(Lease{Origin: "a", Version: "900", Duration: lasts}, s.now)
		}, lasts + after - time.Minute},
		"gone, made again and renewed": {func(s *scene) { s.renew("a"); s.ObserveDeleted("a"); s.wait(time.Minute); s.renew("a") }, lasts + after},
		"there never was a Lease":      {func(s *scene) { s.Expect("a", "team", s.now); s.wait(time.Minute); s.Expect("a", "team", s.now) }, lasts + after - time.Minute},
		"restarted, Jobs are known before the Lease": {func(s *scene) {
			s.renew("a")
			s.wait(2 * time.Minute)
			s.Tracker = NewTracker(after)
			s.Expect("a", "team", s.now)
			s.Observe(s.lease("a"), s.now)
		}, lasts + after - 2*time.Minute},
		"Jobs are gone":                   {func(s *scene) { s.Expect("a", "team", s.now); s.Forget("a") }, 0},
		"released":                        {func(s *scene) { s.renew("a"); s.release("a") }, 0},
		"released, then deleted":          {func(s *scene) { s.release("a"); s.ObserveDeleted("a") }, 0},
		"another hub is there":            {func(s *scene) { s.renew("a"); s.wait(time.Minute); s.renew("b") }, lasts + after - time.Minute},
		"API server away, then back":      {func(s *scene) { s.renew("a"); s.away = true; s.wait(8 * time.Minute); s.away = false }, 2 * lasts},
		"restarted":                       {func(s *scene) { s.renew("a"); s.restart(2 * time.Minute) }, lasts + after - 2*time.Minute},
		"restarted after long":            {func(s *scene) { s.renew("a"); s.restart(12 * time.Minute) }, 2 * lasts},
		"restarted, hub is there":         {func(s *scene) { s.renew("a"); s.restart(12 * time.Minute); s.wait(lasts); s.renew("a") }, lasts + after},
		"restarted, hub's clock is ahead": {func(s *scene) { s.ahead = time.Hour; s.renew("a"); s.restart(2 * time.Minute) }, lasts + after},
		"away only at first":              {func(s *scene) { s.renew("a"); s.away = true; s.wait(2 * time.Minute); s.away = false }, lasts + after - 2*time.Minute},
		"away for longer than the hub waits": {func(s *scene) { s.renew("a"); s.away = true },
			timeout - lasts},
		"back when hardly any time is left": {func(s *scene) { s.renew("a"); s.away = true; s.wait(14 * time.Minute); s.away = false },
			20 * time.Second},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			s := newScene()
			row.story(s)
			got := s.closes("a", 30*time.Minute)
			if off := got - row.want; off < 0 || off > time.Second || (got == 0) != (row.want == 0) {
				t.Errorf("closes after %v, want %v", got, row.want)
			}
		})
	}
}

func TestARenewalOpens(t *testing.T) {
	s := newScene()
	s.renew("a")
	s.renew("b")
	s.wait(time.Hour)
	if !s.Closed("a") || !s.Closed("b") {
		t.Fatal("not closed")
	}
	s.Observe(s.lease("a"), s.now) // written by somebody else: no renewal
	if !s.Closed("a") {
		t.Error("opened without a renewal")
	}
	s.renew("a")
	if s.Closed("a") || !s.Closed("b") {
		t.Errorf("a closed %v, b closed %v", s.Closed("a"), s.Closed("b"))
	}
}

// A tenant makes up origins while the Lease of a hub is missing: the hub's is known by a Job of any
// other namespace, and its fence closes.
func TestMadeUpOriginsKeepNoneUnknown(t *testing.T) {
	s := newScene()
	for i := range 2 * maxUnobserved {
		s.Expect(v1alpha1.Origin(fmt.Sprint("made-up-", i)), "evil", s.now)
	}
	if !s.Expect("hub", "team", s.now) || len(s.Origins()) != maxUnobservedOf+1 {
		t.Errorf("known are %v", s.Origins())
	}
	s.wait(time.Hour)
	if !s.Closed("hub") {
		t.Error("not closed")
	}
	for i := range 2 * maxUnobserved {
		s.Expect(v1alpha1.Origin(fmt.Sprint("made-up-", i)), fmt.Sprint("evil-", i), s.now)
	}
	if len(s.Origins()) != maxUnobserved {
		t.Errorf("%d are known", len(s.Origins()))
	}
}

// A release opens a closed fence, and only origins without a Lease are missing.
func TestReleasedAndMissing(t *testing.T) {
	s := newScene()
	s.renew("a")
	s.renew("b")
	s.Expect("c", "team", s.now)
	s.wait(time.Hour)
	s.ObserveDeleted("b")
	s.ObserveDeleted("nobody")
	s.release("a")
	if s.Closed("a") || !s.Closed("b") || !s.Closed("c") {
		t.Errorf("closed: %v, %v, %v", s.Closed("a"), s.Closed("b"), s.Closed("c"))
	}
	if got := fmt.Sprint(s.Missing(), s.Observed("b"), s.Observed("c"), s.Origins()); got != "[b c] true false [a b c]" {
		t.Error(got)
	}
}

// A hub without a time-out of its own gives no further time.
func TestOlderHub(t *testing.T) {
	s := newScene()
	s.away = true
	s.Observe(Lease{Origin: "a", Duration: lasts}, s.now)
	if got := s.closes("a", time.Hour); got != lasts+after {
		t.Errorf("closes after %v", got)
	}
	if len(s.Late()) != 0 {
		t.Error("late without a time-out")
	}
}

func TestLate(t *testing.T) {
	for name, row := range map[string]struct {
		after, timeout time.Duration
		late           bool
	}{
		"in time":  {after, timeout, false},
		"just so":  {timeout - lasts - time.Second, timeout, false},
		"too late": {timeout - lasts, timeout, true},
		"unknown":  {time.Hour, 0, false},
	} {
		err := Late(row.after, lasts, row.timeout)
		if (err != nil) != row.late {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && (!strings.Contains(err.Error(), "--fence-after") || !strings.Contains(err.Error(), "workerLostTimeout")) {
			t.Errorf("%s: no remedy in %q", name, err)
		}
	}
}

// Whatever happens to the own API server and to other hubs: the fence is closed before the hub
// moves anything, with the time of a Lease to spare for the Pods; it never closes while the hub
// renews in time; and only a renewal opens it.
func TestFenceInAnyStory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newScene()
		s.renew("a")
		renewed := s.now
		t.Repeat(map[string]func(*rapid.T){
			"time": func(t *rapid.T) {
				closedBefore := s.Closed("a")
				s.wait(time.Duration(rapid.IntRange(1, 300).Draw(t, "seconds")) * time.Second)
				s.wait(0)
				silence := s.now.Sub(renewed)
				switch {
				case closedBefore && !s.Closed("a"):
					t.Fatal("opened without a renewal")
				case silence < lasts+after && s.Closed("a"):
					t.Fatalf("closed after %v", silence)
				case silence >= timeout-lasts && !s.Closed("a"):
					t.Fatalf("open after %v", silence)
				}
			},
			"renewal": func(*rapid.T) {
				s.renew("a")
				renewed = s.now
				if s.Closed("a") {
					t.Fatal("a renewal doesn't open")
				}
			},
			"another hub":  func(*rapid.T) { s.renew("b") },
			"deletion":     func(*rapid.T) { s.ObserveDeleted("a") },
			"edit":         func(*rapid.T) { s.Observe(s.lease("a"), s.now) },
			"away or back": func(*rapid.T) { s.away = !s.away },
		})
	})
}

// A site that is cut off, and whose power fails at any time meanwhile, has stopped its Pods when
// the hub moves them; if its power is back as long before that as a live hub may take to renew the
// Lease.
func TestFenceOutlivesItsController(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newScene()
		s.renew("a")
		cut := s.now
		s.wait(time.Duration(rapid.IntRange(0, 400).Draw(t, "before")) * time.Second)
		left := timeout - lasts - 2*lasts - s.now.Sub(cut)
		s.restart(time.Duration(rapid.IntRange(0, int(left/time.Second)).Draw(t, "dark")) * time.Second)
		s.closes("a", time.Hour)
		if silence := s.now.Sub(cut); silence < lasts+after || silence > timeout-lasts {
			t.Fatalf("closes after %s", silence)
		}
	})
}
