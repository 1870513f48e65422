package pods

import (
	"fmt"
	"testing"
	"unique"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/util/queue"
)

// lookedAt is a queue that remembers what was added.
type lookedAt struct {
	queue.Queue
	names map[types.NamespacedName]int
}

func (l *lookedAt) AddWithOpts(_ priorityqueue.AddOpts, requests ...ctrl.Request) {
	for _, r := range requests {
		l.names[r.NamespacedName]++
	}
}

// of counts the Pods of a namespace.
func (l *lookedAt) of(namespace string) (n int) {
	for name := range l.names {
		if name.Namespace == namespace {
			n++
		}
	}
	return n
}

// sweepWorld has Pods on the Node of a worker.
type sweepWorld struct {
	*reconciler
	queue *lookedAt
	pods  toolscache.ResourceEventHandler
	store toolscache.Store
}

func newSweepWorld() *sweepWorld {
	w := &sweepWorld{queue: &lookedAt{names: map[types.NamespacedName]int{}}, store: toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)}
	r := &reconciler{queue: w.queue, registry: clusters.NewRegistry(clusters.Options{}), namespacesSeen: func() bool { return true }}
	r.shadows = newShadows(nil, cache.Options{}, func(*shadow) {}, func(*shadow) {})
	r.shadows.nodes["w1"] = &nodeWatch{store: w.store, synced: func() bool { return true }}
	r.leads.Store(true)
	w.reconciler, w.pods = r, r.shadows.handler()
	return w
}

// create has somebody create Pods that say that they stand for Pods of a Job.
func (w *sweepWorld) create(namespace string, pods int, edit func(*shadow)) {
	for i := range pods {
		s := &shadow{key: podOf(namespace, i), uid: "u", worker: unique.Make("w1"), pod: "pod", job: "job", jobName: "job", phase: unique.Make("Pending")}
		edit(s)
		_ = w.store.Add(s) // it fails for no key
		w.pods.OnAdd(s, false)
	}
}

// swept are the Pods that one sweep has looked at.
func (w *sweepWorld) swept() *lookedAt {
	clear(w.queue.names)
	w.sweep()
	return w.queue
}

// Pods that a tenant keeps by a finalizer aren't looked at until they change.
func TestKeptPodsArentSwept(t *testing.T) {
	w := newSweepWorld()
	w.create("evil", 5_000, func(s *shadow) { s.deleting, s.kept = true, true })
	w.create("team", 1, func(s *shadow) { s.deleting = true })
	if got := w.swept(); got.of("evil") != 0 || got.of("team") != 1 {
		t.Errorf("looks at %d kept Pods, and at %d others", got.of("evil"), got.of("team"))
	}
}

// Of the Pods that a tenant makes, a sweep has a number looked at, and the next ones the others.
// Those of other namespaces are among the first.
func TestASweepIsBounded(t *testing.T) {
	w := newSweepWorld()
	const many = 10*maxSwept + 1
	w.create("evil", many, func(s *shadow) { s.deleting, s.grace = true, 30 })
	w.create("team", 10, func(s *shadow) { s.deleting, s.grace = true, 30 })
	seen := map[types.NamespacedName]bool{}
	for range 11 {
		got := w.swept()
		if len(got.names) > maxSwept || got.of("team") != 10 {
			t.Fatalf("looks at %d Pods, of which %d are another namespace's", len(got.names), got.of("team"))
		}
		for name := range got.names {
			seen[name] = true
		}
	}
	if len(seen) != many+10 {
		t.Errorf("looked at %d Pods, and not at %d", len(seen), many+10)
	}
}

// What namespaces with few Pods don't use of a sweep, the others share.
func TestSharesOfASweep(t *testing.T) {
	due := duePods{}
	for namespace, pods := range map[string]int{"a": 5_000, "b": 5_000, "c": 100} {
		for i := range pods {
			due.add("w1", podOf(namespace, i))
			due.add("w1", podOf(namespace, i)) // counts once
		}
	}
	due.add("w2", podOf("a", 0))
	names, next := due.choose(cursors{})
	got := map[string]int{}
	for _, name := range names {
		got[name.Namespace]++
	}
	if got["a"] != 450+1 || got["b"] != 450 || got["c"] != 100 {
		t.Errorf("chosen %v", got)
	}
	if next[cursorKey{worker: "w1"}] != "b" || next[cursorKey{"w1", "a"}] != podOf("a", 449).Name {
		t.Errorf("goes on at %v", next)
	}
}

// Of more namespaces than a sweep has looks, all have their turn.
func TestASweepOfManyNamespaces(t *testing.T) {
	seen, next := map[types.NamespacedName]bool{}, cursors{}
	for range 3 {
		due := duePods{}
		for i := range maxSwept * 3 / 2 {
			for pod := range 2 {
				due.add("w1", podOf(fmt.Sprint("n", i), pod))
			}
		}
		var names []types.NamespacedName
		if names, next = due.choose(next); len(names) != maxSwept {
			t.Errorf("%d are chosen", len(names))
		}
		for _, name := range names {
			seen[name] = true
		}
	}
	if len(seen) != 3*maxSwept {
		t.Errorf("%d have been chosen", len(seen))
	}
}

// Of a Pod whose fate is clear without its Job, the Job isn't read: each look would unpack it.
func TestNoJobIsReadInVain(t *testing.T) {
	for name, row := range map[string]struct {
		edits []edit
		reads int
	}{
		"a usual one":                {nil, 1},
		"kept by a finalizer":        {[]edit{atOnce, kept}, 0},
		"of another Pod":             {[]edit{func(s *snapshot) { s.shadow.pod = "made up" }}, 0},
		"of no Pod":                  {[]edit{noPod}, 0},
		"of no Pod, deleted":         {[]edit{noPod, deleted}, 0},
		"a stranger, deleted":        {[]edit{stranger, deleted}, 0},
		"a namespace without label":  {[]edit{func(s *snapshot) { s.shown = false }}, 0},
		"a namespace that's deleted": {[]edit{leaving, deleted}, 0},
	} {
		hub := &hubReader{answer: func(_ types.NamespacedName, job *batchv1.Job) error {
			job.UID, job.Spec.ManagedBy = "job", ptr.To(v1alpha1.ManagedByDispatcher)
			return nil
		}}
		s := &seen{snapshot: *usual(), name: podOf("evil", 0)}
		s.shadow.key = s.name
		for _, edit := range row.edits {
			edit(&s.snapshot)
		}
		if err := s.findJob(t.Context(), &reconciler{cache: hub}, "job"); err != nil || hub.reads != row.reads {
			t.Errorf("%s: %d reads, error %v", name, hub.reads, err)
		}
		if action, _ := decide(&s.snapshot); row.reads == 0 && action != Remove && !s.shadow.isKept() {
			t.Errorf("%s: decided %q", name, action)
		}
	}
}

// Pods that name the UID of another namespace's Job don't count against its limit.
func TestShadowsCountInTheirNamespace(t *testing.T) {
	w := newSweepWorld()
	job := testJob()
	w.create("evil", mostOf(job), func(s *shadow) { s.job = job.UID })
	if n := w.shadows.of(job, "w1"); n != 0 {
		t.Errorf("the Job has %d shadows", n)
	}
	w.create(job.Namespace, 2, func(s *shadow) { s.job = job.UID })
	if n := w.shadows.of(job, "w1"); n != 2 {
		t.Errorf("the Job has %d shadows", n)
	}
	for _, object := range w.store.List() {
		w.pods.OnDelete(object)
	}
	if len(w.shadows.jobs) != 0 {
		t.Errorf("%v are kept", w.shadows.jobs)
	}
}

// However many Pods of a Job one worker makes, those of the Job in another worker are shown.
func TestShadowsCountInTheirWorker(t *testing.T) {
	w := newSweepWorld()
	job := testJob()
	w.create(job.Namespace, mostOf(job), func(s *shadow) { s.job, s.worker = job.UID, unique.Make("evil") })
	if there, here := w.shadows.of(job, "evil"), w.shadows.of(job, "w1"); there != mostOf(job) || here != 0 {
		t.Errorf("the Job has %d shadows of its worker, and %d of another", there, here)
	}
}
