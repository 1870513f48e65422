package job

import (
	"errors"
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// inTheWay is what keeps mirrors of some Jobs out of the worker a, and how it goes.
type inTheWay struct {
	comes func(w *world)
	// refuses is the answer to the creation of a mirror while it's there; nil: the world gives it.
	refuses func() error
	goes    func(w *world)
	// unseen: no look at the worker shows that it's gone.
	unseen bool
}

func terminating() error {
	err := apierrors.NewForbidden(jobsResource, "train", errors.New("being terminated"))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	return err
}

func team(finalizers ...string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: jobKey.Namespace, Finalizers: finalizers}}
}

func (w *world) inA(what string, do func(c client.Client) error) {
	w.Helper()
	w.logf("a", "%s", what)
	if err := do(w.worker("a").api.others); err != nil {
		w.Fatal(err)
	}
}

func ways() map[string]inTheWay {
	isTerminating := func(w *world) {
		w.inA("the namespace is terminating", func(c client.Client) error {
			ns := team("example.org/held")
			return errors.Join(c.Create(w.Context(), ns), c.Delete(w.Context(), ns))
		})
	}
	hasFinalized := func(w *world) {
		w.inA("the namespace is gone", func(c client.Client) error {
			ns := team()
			err := c.Get(w.Context(), client.ObjectKeyFromObject(ns), ns)
			ns.Finalizers = nil
			return errors.Join(err, c.Update(w.Context(), ns))
		})
	}
	createsNone := func(w *world) { w.worker("a").view.Spec.CreateNamespaces = ptr.To(false) }
	return map[string]inTheWay{
		"a foreign Job": {
			comes: func(w *world) { w.worker("a").has(aJob(jobKey.Name, suspended(true))) },
			goes:  func(w *world) { w.worker("a").loses() },
		},
		"a namespace that is being deleted": {comes: isTerminating, refuses: terminating, goes: hasFinalized},
		"a namespace that was deleted and created again": {comes: isTerminating, refuses: terminating, goes: func(w *world) {
			hasFinalized(w)
			w.inA("the namespace is back", func(c client.Client) error { return c.Create(w.Context(), team()) })
		}},
		"no namespace": {comes: createsNone, refuses: func() error { return noNamespace }, goes: func(w *world) {
			w.inA("the namespace is created", func(c client.Client) error { return c.Create(w.Context(), team()) })
		}},
		"a setting that forbids to create the namespace": {comes: createsNone, refuses: func() error { return noNamespace }, goes: func(w *world) {
			w.worker("a").view.Spec.CreateNamespaces = nil
		}},
		"a policy": {
			comes: func(*world) {}, goes: func(*world) {}, unseen: true,
			refuses: func() error { return apierrors.NewForbidden(jobsResource, "train", errors.New("denied")) },
		},
	}
}

// onlyIn has a Job run in one worker alone.
func onlyIn(worker string) func(*batchv1.Job) {
	return annotated(v1alpha1.AnnotationClusterSelector, "name="+worker)
}

// A worker that refuses a mirror because of something that can be seen there is tried again soon
// after that's gone; else after the usual time.
func TestARefusalIsOver(t *testing.T) {
	for name, row := range ways() {
		t.Run(name, func(t *testing.T) {
			w, gone := newWorld(t), false
			w.worker("a").view.Labels = map[string]string{"name": "a"}
			w.refuses = func(sent write) error {
				if _, ofJob := sent.object.(*batchv1.Job); ofJob && sent.verb == "create" && sent.server == "a" && !gone && row.refuses != nil {
					return row.refuses()
				}
				return nil
			}
			row.comes(w)
			w.submits(aJob(jobKey.Name, onlyIn("a")))
			w.step(12 * time.Second)
			if w.running("a") {
				w.fail("it runs in a already")
			}
			gone = true
			row.goes(w)
			w.step(15 * time.Second)
			if w.running("a") == row.unseen {
				w.fail("soon after, it runs: %v", !row.unseen)
			}
			w.step(6 * time.Minute)
			if !w.running("a") {
				w.fail("it doesn't run in a")
			}
			if len(w.blockers.watched) > 0 {
				w.fail("%d blockers are still watched", len(w.blockers.watched))
			}
		})
	}
}

// What stands in the way of many Jobs is looked at once for all, and what can't be seen isn't
// looked at again.
func TestLooksAtBlockers(t *testing.T) {
	looks := func(jobs int, step time.Duration, answer error) (n int) {
		w := newWorld(t)
		w.worker("a").view.Labels = map[string]string{"name": "a"}
		ways()["a namespace that is being deleted"].comes(w)
		w.refuses = func(sent write) error {
			switch {
			case sent.server == "a" && sent.verb == "list":
				n++
				return answer
			case sent.server == "a" && sent.verb == "create":
				return terminating()
			}
			return nil
		}
		for i := range jobs {
			w.submits(aJob(fmt.Sprint("train-", i), onlyIn("a")))
		}
		w.step(step)
		return n
	}
	if n := looks(20, time.Minute, nil); n != 5 { // after 2, 6, 14, 30 and 60 seconds
		t.Errorf("%d looks for 20 Jobs", n)
	}
	if n := looks(1, 4*time.Minute, apierrors.NewForbidden(corev1.Resource("namespaces"), "", errors.New("list"))); n != 1 {
		t.Errorf("%d looks at what can't be seen", n)
	}
}

// Many blockers in one worker are looked at at a bounded pace.
func TestManyBlockers(t *testing.T) {
	w := newWorld(t)
	w.worker("a").view.Labels = map[string]string{"name": "a"}
	n := 0
	w.refuses = func(sent write) error {
		if sent.server == "a" && sent.verb == "list" {
			n++
		}
		return nil
	}
	for i := range 100 {
		job := aJob(fmt.Sprint("train-", i), onlyIn("a"))
		w.worker("a").has(aJob(job.Name, suspended(true)))
		w.submits(job)
	}
	w.step(10 * time.Second)
	if most := 11 * looksPerSecond; n == 0 || n > most {
		t.Errorf("%d looks in 10 s, want at most %d", n, most)
	}
}

// Large Jobs of a worker are in the way of mirrors: as long as these are refused, little of the
// others is kept.
func TestLittleIsKeptOfWhatIsInTheWay(t *testing.T) {
	w := newWorld(t)
	a := w.worker("a")
	const jobs = 30
	for i := range jobs {
		large := aJob(fmt.Sprint("train-", i), suspended(true))
		large.Status.Conditions = make([]batchv1.JobCondition, 8000)
		a.has(large)
		w.submits(aJob(large.Name))
	}
	w.deliver()
	before := heap().HeapAlloc
	for i := range jobs {
		seen := w.look(t.Context(), types.NamespacedName{Namespace: jobKey.Namespace, Name: fmt.Sprint("train-", i)})
		ctx, _ := a.Hold(t.Context())
		_, err := w.takeExisting(ctx, seen, a)
		refusal := (*refusalError)(nil)
		if !errors.As(err, &refusal) {
			t.Fatal(err)
		}
		w.refused(ctx, seen, refusal)
	}
	took := int64(heap().HeapAlloc) - int64(before) //nolint:gosec // no heap has 2^63 bytes
	if n := len(w.blockers.watched); n != jobs || took > jobs<<17 {
		t.Errorf("%d KiB are kept of %d Jobs", took>>10, n)
	}
}
