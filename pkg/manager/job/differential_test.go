package job

import (
	"flag"
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/mirror"
)

var (
	storyCount = flag.Uint64("stories", 200, "how many stories TestDividedEndsAsWhole plays")
	firstStory = flag.Uint64("story", 1, "the number of the first story")
)

// TestDividedEndsAsWhole plays each story twice: one Job controller runs the Job in a cluster as
// wide as it wants, and the manager divides it over workers. The Job controllers are those of
// package plan.
//
// Where the fates of its completions determine how the Job ends, both runs end equal: conditions,
// counters and indexes. Where chance decides, the end is one that is allowed, see allowedEnds. In
// any case a run's end says what really happened in it, see checkEnd: which indexes have succeeded
// and failed, how many Pods have, and that the rule holds by which the Job ended.
//
// Pods that were killed for an early end count as failed, or not, as the Job controller has it; by
// how much the divided Job exceeds backoffLimit is limited by the Pods that run at once.
func TestDividedEndsAsWhole(t *testing.T) {
	seen := map[string]int{}
	for n := range *storyCount {
		t.Run(fmt.Sprint(*firstStory+n), func(t *testing.T) {
			s := anyStory(*firstStory + n)
			ends := s.allowedEnds()
			whole := s.playWhole(t, ends)
			divided := s.playDivided(t, ends)
			if difference := differs(whole, divided, ends); difference != "" {
				t.Fatalf("%s\nwhole   %+v\ndivided %+v\n%s", difference, whole, divided, s)
			}
			seen[ending(divided).Reason]++
			if ends.exact {
				seen["determined"]++
			}
		})
	}
	t.Logf("of %d stories: %v", *storyCount, seen)
}

// differs compares the ends of two runs.
func differs(whole, divided *batchv1.JobStatus, ends allowedEnds) string {
	a, b := ending(whole), ending(divided)
	switch {
	case ends.reasons.Len() == 1 && (a.Type != b.Type || a.Reason != b.Reason):
		return "the conditions differ"
	case !ends.exact:
		return ""
	case a.Message != b.Message:
		return "the messages differ"
	case whole.Succeeded != divided.Succeeded || whole.Failed != divided.Failed:
		return "the counters differ"
	case whole.CompletedIndexes != divided.CompletedIndexes || !ptr.Equal(whole.FailedIndexes, divided.FailedIndexes):
		return "the indexes differ"
	case (whole.CompletionTime == nil) != (divided.CompletionTime == nil):
		return "the completion times differ"
	}
	return ""
}

// playWhole is the run under one Job controller.
func (s *jobStory) playWhole(t *testing.T, ends allowedEnds) *batchv1.JobStatus {
	clock := testingclock.NewFakeClock(noon)
	var log []string
	c := &podCluster{oneRun: newRun(s), api: newAPIServer("one", clock), clock: clock, grace: s.grace}
	c.pods = map[podUID]*onePod{}
	c.logf = func(format string, args ...any) {
		log = append(log, clock.Now().Format("15:04:05 ")+fmt.Sprintf(format, args...))
	}
	if err := c.api.create(s.whole()); err != nil {
		t.Fatal(err)
	}
	p := player{
		jobStory: s, run: c.oneRun, clusters: []*podCluster{c}, clock: clock,
		step: clock.Step,
		rest: c.work,
		edit: func(e edit) { c.logf("user %s", e.what); c.api.change(jobKey, e.change) },
		job:  func() *batchv1.Job { return c.api.jobs[jobKey] },
	}
	if err := p.play(ends); err != nil {
		for _, line := range log {
			t.Log(line)
		}
		t.Fatalf("under one Job controller: %v\n%s", err, s)
	}
	return &p.job().Status
}

// playDivided is the run in several workers.
func (s *jobStory) playDivided(t *testing.T, ends allowedEnds) *batchv1.JobStatus {
	w := newWorld(t)
	clear(w.workers)
	run := newRun(s)
	p := player{jobStory: s, run: run, clock: w.clock.FakeClock, step: w.step, rest: w.run}
	for i, worker := range s.workers {
		v := w.addWorker(fmt.Sprintf("w%d", i), worker.cpus)
		if worker.embedded {
			w.isEmbedded(v.Name())
		}
		v.connect()
		c := &podCluster{oneRun: run, api: v.api, clock: w.clock, grace: s.grace, pods: map[podUID]*onePod{}}
		c.logf = func(format string, args ...any) { w.logf(v.Name(), format, args...) }
		v.pods = c
		p.clusters = append(p.clusters, c)
	}
	p.edit = func(e edit) { w.edits(e.what, e.change) }
	p.job = func() *batchv1.Job { return w.hub.jobs[jobKey] }
	p.now = func(at time.Duration) {
		for i, worker := range s.workers {
			w.worker(fmt.Sprintf("w%d", i)).idle = worker.idleFrom <= at && at < worker.idleUntil
			p.lags = p.lags || w.worker(fmt.Sprintf("w%d", i)).idle
		}
	}
	w.submits(s.job.DeepCopy())
	before := w.hub.jobs[jobKey]
	w.answers = func(sent write) {
		if sent.server != "hub" || sent.verb != "status" {
			return
		}
		after := w.hub.jobs[jobKey]
		if err := checkProgress(before, after); err != nil && run.problem == "" {
			run.problem = err.Error()
		}
		if mirror.Finished(after) && p.live() > 0 {
			run.problem = "the Job ends while Pods run"
		}
		before = after
	}
	if err := p.play(ends); err != nil {
		for _, v := range w.registered() {
			if m := v.api.jobs[jobKey]; m != nil {
				w.logf(v.Name(), "has %v, parallelism %d, %+v", m.Annotations, *m.Spec.Parallelism, m.Status)
			}
		}
		w.fail("in several workers: %v; placed %v\n%s", err, p.job().Annotations, s)
	}
	return &p.job().Status
}

// player plays a story in some clusters.
type player struct {
	*jobStory
	run      *oneRun
	clusters []*podCluster
	clock    *testingclock.FakeClock
	step     func(time.Duration)
	rest     func() // until nothing is left to do at this time
	edit     func(edit)
	job      func() *batchv1.Job
	now      func(time.Duration)
	lags     bool
}

// play goes on until the Job has ended, and a while longer.
func (p *player) play(ends allowedEnds) error {
	start, edits := p.clock.Now(), p.edits
	p.run.widest = int(*p.job().Spec.Parallelism)
	for range 3000 {
		at := p.clock.Since(start)
		for _, c := range p.clusters {
			c.endPods()
		}
		if p.now != nil {
			p.now(at)
		}
		for ; len(edits) > 0 && edits[0].at <= at; edits = edits[1:] {
			p.edit(edits[0])
			p.run.widest = max(p.run.widest, int(*p.job().Spec.Parallelism))
		}
		p.rest()
		switch {
		case p.run.problem != "":
			return fmt.Errorf("%s", p.run.problem)
		case mirror.Finished(p.job()):
			return p.finish(ends)
		}
		p.step(p.next(start, at) - at)
	}
	return fmt.Errorf("the Job doesn't end: %+v", p.job().Status)
}

// next is when something happens next.
func (p *player) next(start time.Time, at time.Duration) time.Duration {
	next := at + time.Minute
	if due := p.due(at); due > 0 {
		next = min(next, due)
	}
	for _, c := range p.clusters {
		if due := c.due(); !due.IsZero() {
			next = min(next, due.Sub(start))
		}
	}
	return next
}

func (p *player) live() (all int) {
	for _, c := range p.clusters {
		active, terminating := c.live()
		all += active + terminating
	}
	return all
}

func (p *player) finish(ends allowedEnds) error {
	if p.live() > 0 {
		return fmt.Errorf("%d Pods run on", p.live())
	}
	status := p.job().Status.DeepCopy()
	for range 3 {
		p.step(10 * time.Minute)
		p.rest()
	}
	for _, c := range p.clusters {
		for _, pod := range c.pods {
			if len(pod.Finalizers) > 0 {
				return fmt.Errorf("%s isn't released", pod.Name)
			}
		}
	}
	if p.live() > 0 {
		return fmt.Errorf("%d Pods were started after the end", p.live())
	}
	return p.run.checkEnd(status, ends)
}
