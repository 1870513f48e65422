package clusters

import (
	"math/rand/v2"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters/clustertest"
)

func ago(d time.Duration) time.Time { return noon.Add(-d) }

// lostFor is a worker that was Ready until some time ago, as seen by a process that has run for
// longer.
func lostFor(d time.Duration) View {
	return View{Health: Health{State: Disconnected, Since: ago(d), LossClock: ago(d), Observed: ago(d)}}
}

func TestLoss(t *testing.T) {
	const timeout = 15 * time.Minute
	never := time.Time{}
	with := func(v View, change func(*View)) View { change(&v); return v }
	for name, c := range map[string]struct {
		view    View
		timeout time.Duration
		witness time.Time
		want    LossState
		in      time.Duration
	}{
		"Ready":                        {View{Health: Health{State: Ready}}, timeout, ago(time.Hour), NotLost, 0},
		"not known yet":                {View{Health: Health{State: Connecting, Since: ago(time.Hour)}}, timeout, ago(time.Hour), NotLost, 0},
		"for a while":                  {lostFor(14 * time.Minute), timeout, ago(time.Hour), LossPending, time.Minute},
		"for long enough":              {lostFor(timeout), timeout, ago(time.Hour), Lost, 0},
		"its own time-out":             {lostFor(14 * time.Minute), 10 * time.Minute, ago(time.Hour), Lost, 0},
		"refused counts, too":          {with(lostFor(timeout), func(v *View) { v.State = Refused }), timeout, ago(time.Hour), Lost, 0},
		"no other is Ready":            {lostFor(timeout), timeout, never, Isolated, 0},
		"no other, but not for long":   {lostFor(time.Minute), timeout, never, LossPending, 14 * time.Minute},
		"another just came back":       {lostFor(time.Hour), timeout, ago(20 * time.Second), LossPending, 40 * time.Second},
		"the manager has just started": {with(lostFor(time.Hour), func(v *View) { v.Observed = ago(time.Second) }), timeout, ago(time.Second), LossPending, 59 * time.Second},
		"grace within the time-out":    {with(lostFor(time.Hour), func(v *View) { v.Observed = ago(time.Second) }), 3 * time.Second, ago(time.Hour), LossPending, 2 * time.Second},
		"the clock began anew":         {with(lostFor(time.Hour), func(v *View) { v.LossClock = ago(5 * time.Minute) }), timeout, ago(5 * time.Minute), LossPending, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			loss := lossOf(c.view, c.timeout, c.witness, noon)
			if loss.State != c.want {
				t.Errorf("%s, want %s", loss.State, c.want)
			}
			if loss.State == LossPending && loss.At.Sub(noon) != c.in {
				t.Errorf("looked at again in %s, want %s", loss.At.Sub(noon), c.in)
			}
		})
	}
}

func TestRecollectTheLossClock(t *testing.T) {
	ready := func(is metav1.ConditionStatus, at time.Time) metav1.Condition {
		return metav1.Condition{Type: v1alpha1.ConditionReady, Status: is, LastTransitionTime: metav1.NewTime(at)}
	}
	lost := func(is metav1.ConditionStatus, at time.Time) metav1.Condition {
		return metav1.Condition{Type: v1alpha1.ConditionLost, Status: is, LastTransitionTime: metav1.NewTime(at)}
	}
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	for name, c := range map[string]struct {
		conditions   []metav1.Condition
		since, clock time.Time
	}{
		"never connected":                 {nil, noon, noon},
		"Ready":                           {[]metav1.Condition{ready(yes, ago(time.Hour)), lost(no, ago(time.Hour))}, time.Time{}, time.Time{}},
		"not Ready":                       {[]metav1.Condition{ready(no, ago(time.Minute)), lost(no, ago(time.Hour))}, ago(time.Minute), ago(time.Minute)},
		"lost":                            {[]metav1.Condition{ready(no, ago(time.Hour)), lost(yes, ago(time.Minute))}, ago(time.Hour), ago(time.Hour)},
		"after a time of isolation":       {[]metav1.Condition{ready(no, ago(time.Hour)), lost(no, ago(time.Minute))}, ago(time.Hour), ago(time.Minute)},
		"died in a time of isolation":     {[]metav1.Condition{ready(no, ago(time.Hour)), lost(unknown, ago(time.Minute))}, ago(time.Hour), noon},
		"a clock that was ahead":          {[]metav1.Condition{ready(no, noon.Add(time.Hour))}, noon, noon},
		"a manager that didn't know Lost": {[]metav1.Condition{ready(no, ago(time.Hour))}, ago(time.Hour), ago(time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			s := given(noWorker)
			s.cluster.Status.Conditions = c.conditions
			if got := knownBefore(s); !got.since.Equal(c.since) || !got.clock.Equal(c.clock) {
				t.Errorf("since %s, clock %s; want %s, %s", got.since, got.clock, c.since, c.clock)
			}
		})
	}
}

func TestIsolation(t *testing.T) {
	at := func(s int) time.Time { return noon.Add(time.Duration(s) * time.Second) }
	i := &isolation{since: at(0)}
	for _, step := range []struct {
		second   int
		anyReady bool
		changed  bool
		began    time.Time
	}{
		{1, false, false, time.Time{}}, // since the start
		{2, true, true, at(0)},
		{3, true, false, time.Time{}},
		{4, false, true, time.Time{}},
		{5, false, false, time.Time{}},
		{9, true, true, at(4)},
	} {
		if changed, began := i.record(step.anyReady, at(step.second)); changed != step.changed || !began.Equal(step.began) {
			t.Errorf("at %d s: %v %s, want %v %s", step.second, changed, began, step.changed, step.began)
		}
	}
}

// A standby becomes the leader: the time before isn't one of isolation, in which the clocks of
// workers that are lost long since would have run out.
func TestAStandbyWasntIsolated(t *testing.T) {
	now := clocktesting.NewFakeClock(noon)
	r := NewRegistry(Options{Clock: now})
	t.Cleanup(r.queue.ShutDown)
	now.Step(10 * time.Hour)
	r.lead(nil)
	now.Step(time.Second)
	if changed, began := r.isolation.record(true, now.Now()); !changed || !began.Equal(noon.Add(10*time.Hour)) {
		t.Errorf("isolated since %s (%v)", began, changed)
	}
}

// hesitant is a clock that lets others go first.
type hesitant struct{ clock.WithDelayedExecution }

func (c hesitant) Now() time.Time {
	for range rand.IntN(20) {
		runtime.Gosched()
	}
	return c.WithDelayedExecution.Now()
}

// One worker is lost in the moment in which another comes back, again and again: what is thought of
// the hub in the end is what is true.
func TestLookingAroundAtOnce(t *testing.T) {
	r := NewRegistry(Options{Clock: hesitant{clock.RealClock{}}})
	t.Cleanup(r.queue.ShutDown)
	set := func(w *Worker, s State) {
		w.view.Store(&View{Health: Health{State: s, Observed: noon}})
		r.updateIsolation()
	}
	for _, name := range []string{"a", "b"} {
		r.workers[name] = &Worker{name: name, changed: func() {}, options: r.options}
		set(r.workers[name], Disconnected)
	}
	r.sort()
	set(r.workers["a"], Ready)
	for range 2000 {
		var both sync.WaitGroup
		both.Go(func() { set(r.workers["a"], Disconnected) })
		both.Go(func() { set(r.workers["b"], Ready) })
		both.Wait()
		if !r.isolation.since.IsZero() {
			t.Fatal("isolated, while a worker is Ready")
		}
		set(r.workers["a"], Ready)
		set(r.workers["b"], Disconnected)
	}
}

// Both workers are cut off for longer than their time-out; when one is back, the other isn't lost,
// but has its whole time-out before it.
func TestAnIsolatedHubGivesNobodyUp(t *testing.T) {
	w := newWorld(t)
	timeout := &metav1.Duration{Duration: 400 * time.Millisecond}
	settings := Settings{Spec: v1alpha1.WorkerClusterSpec{Capacity: v1alpha1.CapacityUnlimited, WorkerLostTimeout: timeout}}
	c, d := w.server.Add("c", "uid-c", "t"), w.server.Add("d", "uid-d", "t")
	first := w.configure("w1", c.Kubeconfig("t"), settings, known{})
	second := w.configure("w2", d.Kubeconfig("t"), settings, known{})
	w.untilState(first, Ready, v1alpha1.ReasonConnected)
	w.untilState(second, Ready, v1alpha1.ReasonConnected)
	c.Hang()
	d.Hang()
	for _, name := range []string{"w1", "w2"} {
		w.until(name+" would be lost", func() bool { return w.registry.Loss(name).State == Isolated })
	}
	before := time.Now()
	c.Heal()
	w.untilState(first, Ready, v1alpha1.ReasonConnected)
	w.until("the clock begins anew", func() bool { return second.View().LossClock.After(before) })
	if view := second.View(); !view.Since.Before(before) {
		t.Errorf("not Ready since %s", view.Since)
	}
	w.until("in the end it's lost", func() bool { return w.registry.Loss("w2").State == Lost })
	if took := time.Since(before); took < timeout.Duration {
		t.Errorf("given up %s after the isolation, want not before %s", took, timeout.Duration)
	}
}

// The API server answers probes but serves no watches: what is known of the mirrors gets old, and
// the worker doesn't stay Ready for ever.
func TestAWatchThatFailsIsALoss(t *testing.T) {
	maintenance := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "86400")
		http.Error(w, "maintenance", http.StatusServiceUnavailable)
	}
	for name, fails := range map[string]func(c *clustertest.Cluster, fails bool){
		"an error": func(c *clustertest.Cluster, fails bool) { c.Break("jobs", fails) },
		"an error that says to wait": func(c *clustertest.Cluster, fails bool) {
			c.Answer("watch jobs", map[bool]http.HandlerFunc{true: maintenance}[fails])
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := w.server.Add("c", "uid", "t")
			worker := w.register("w1", c.Kubeconfig("t"))
			w.untilState(worker, Ready, v1alpha1.ReasonConnected)
			before := time.Now()
			fails(c, true)
			w.server.Cut()
			view := w.untilState(worker, Disconnected, v1alpha1.ReasonUnreachable)
			if limit := 3 * w.registry.options.ProbeInterval; view.LossClock.Sub(before) < limit {
				t.Errorf("since %s, which is less than %s after the watch failed: the fence was kept until then", view.LossClock, limit)
			}
			w.until("it answers probes all the same", func() bool { return !worker.View().LastContact.Before(view.LossClock) })
			fails(c, false)
			w.untilState(worker, Ready, v1alpha1.ReasonConnected)
		})
	}
}

func TestLostCondition(t *testing.T) {
	for state, want := range map[LossState]metav1.ConditionStatus{
		NotLost: metav1.ConditionFalse, LossPending: metav1.ConditionFalse, Isolated: metav1.ConditionUnknown, Lost: metav1.ConditionTrue,
	} {
		s := given(in(Disconnected, v1alpha1.ReasonUnreachable), func(s *gathered) { s.worker.loss = Loss{State: state, Since: ago(time.Hour)} })
		p := decide(s, options)
		c := meta.FindStatusCondition(p.status.Conditions, v1alpha1.ConditionLost)
		if c.Status != want || c.Message == "" {
			t.Errorf("%s: %+v", state, c)
		}
		// the first is of the condition Ready
		if lost := len(p.events) - 1; (lost == 1) != (want != metav1.ConditionFalse) {
			t.Errorf("%s: events %+v", state, p.events)
		}
	}
}
