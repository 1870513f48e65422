package job

import (
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// state is a Job as of one resourceVersion.
func state(uid types.UID, version string) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "train", UID: uid, ResourceVersion: version}}
}

func TestOwnWriteLatest(t *testing.T) {
	wrote := func(uid types.UID, version string) ownWrite { return ownWrite{job: state(uid, version), at: noon} }
	deleted := func(uid types.UID) ownWrite { return ownWrite{deleted: uid, at: noon} }
	rows := map[string]struct {
		given   ownWrite
		cached  *batchv1.Job
		after   time.Duration
		want    string // resourceVersion; empty: none
		leaving bool
	}{
		"nothing was written":               {ownWrite{}, state("a", "5"), 0, "5", false},
		"the cache is behind":               {wrote("a", "10"), state("a", "9"), 0, "10", false},
		"the cache has caught up":           {wrote("a", "10"), state("a", "10"), 0, "10", false},
		"the cache is ahead":                {wrote("a", "10"), state("a", "11"), 0, "11", false},
		"versions aren't compared as text":  {wrote("a", "10"), state("a", "9"), 0, "10", false},
		"created, not yet in the cache":     {wrote("a", "10"), nil, 0, "10", false},
		"created, and never in the cache":   {wrote("a", "10"), nil, 2 * time.Minute, "", false},
		"made anew after it was written":    {wrote("a", "10"), state("b", "12"), 0, "12", false},
		"deletion not yet in the cache":     {deleted("a"), state("a", "5"), 0, "5", true},
		"deleted, gone from the cache":      {deleted("a"), nil, 0, "", false},
		"deleted, and made anew":            {deleted("a"), state("b", "9"), 0, "9", false},
		"deletion that never showed effect": {deleted("a"), state("a", "5"), 2 * time.Minute, "5", false},
		"what can't be compared isn't newer": {
			wrote("a", "x"), state("a", "5"), 0, "5", false},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			got := row.given.latest(row.cached, noon.Add(row.after))
			if version(got) != row.want {
				t.Errorf("version %q, want %q", version(got), row.want)
			}
			if got != nil && (got.DeletionTimestamp != nil) != row.leaving {
				t.Errorf("deletionTimestamp %v, want it: %v", got.DeletionTimestamp, row.leaving)
			}
		})
	}
}

func version(job *batchv1.Job) string {
	if job == nil {
		return ""
	}
	return job.ResourceVersion
}

func TestOwnWriteIsDroppedWhenObserved(t *testing.T) {
	rows := map[string]struct {
		given         ownWrite
		seen          *batchv1.Job
		echo, dropped bool
	}{
		"an older state":           {ownWrite{job: state("a", "10")}, state("a", "9"), false, false},
		"what was written":         {ownWrite{job: state("a", "10")}, state("a", "10"), true, true},
		"a newer state":            {ownWrite{job: state("a", "10")}, state("a", "11"), false, true},
		"not deleted yet":          {ownWrite{deleted: "a"}, state("a", "11"), false, false},
		"being deleted":            {ownWrite{deleted: "a"}, leaving(state("a", "11")), false, true},
		"another one, deleted too": {ownWrite{deleted: "a"}, leaving(state("b", "11")), false, false},
		"nothing was written":      {ownWrite{}, state("a", "11"), false, true},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			w := row.given
			if echo := w.observe(row.seen); echo != row.echo {
				t.Errorf("an echo: %v", echo)
			}
			if dropped := w == (ownWrite{}); dropped != row.dropped {
				t.Errorf("dropped: %v", dropped)
			}
		})
	}
}

func leaving(job *batchv1.Job) *batchv1.Job {
	job.DeletionTimestamp = &metav1.Time{Time: noon}
	return job
}

// A policy of the hub takes back what the manager writes: it's tried more and more rarely, and
// told.
func TestAHubThatTakesWritesBack(t *testing.T) {
	for name, take := range map[string]func(*batchv1.Job){
		"the finalizer":  func(job *batchv1.Job) { job.Finalizers = nil },
		"the conditions": func(job *batchv1.Job) { job.Status.Conditions = nil },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.hub.takes = take
			w.submits(aJob("train"))
			before := w.writes
			w.step(5 * time.Minute)
			if writes := w.writes - before; writes > 20 {
				w.fail("%d writes in 5 minutes", writes)
			}
			if !slices.ContainsFunc(w.events, func(e string) bool { return strings.Contains(e, "a policy of the hub removes "+name[:13]) }) {
				w.fail("events %q", w.events)
			}
			w.hub.takes = nil
			w.step(2 * time.Minute)
			if !w.running("a") {
				w.fail("it doesn't run\n%s", w.state())
			}
		})
	}
}
