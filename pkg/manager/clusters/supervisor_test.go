package clusters

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

func TestAWorkerComesUp(t *testing.T) {
	w := newWorld(t)
	worker := w.register("w1", w.server.Add("c1", "uid-1", "token").Kubeconfig("token"))
	view := w.untilState(worker, Ready, v1alpha1.ReasonConnected)
	if view.ClusterUID != "uid-1" || view.Version != "v1.36.3" || !view.Since.IsZero() || view.LastContact.IsZero() {
		t.Errorf("view: %+v", view)
	}
	if !worker.Synced() || len(worker.Mirrors()) != 0 {
		t.Error("the empty cluster isn't listed")
	}
	w.until("the capacity is known", func() bool { return worker.View().Capacity.Known })
}

func TestWhyAWorkerIsNotReady(t *testing.T) {
	for _, c := range []struct {
		name       string
		kubeconfig func(*world) []byte
		state      State
		reason     string
	}{
		{"rubbish", func(*world) []byte { return []byte("rubbish") }, Refused, v1alpha1.ReasonKubeconfigInvalid},
		{"bad token", func(w *world) []byte { return w.server.Add("c", "u", "good").Kubeconfig("bad") }, Disconnected, v1alpha1.ReasonUnauthorized},
		{"the hub", func(w *world) []byte { return w.server.Add("c", "hub", "t").Kubeconfig("t") }, Refused, v1alpha1.ReasonIsHub},
		{"namespace forbidden", func(w *world) []byte {
			c := w.server.Add("c", "u", "t")
			c.Forbid("kube-system", true)
			return c.Kubeconfig("t")
		}, Disconnected, v1alpha1.ReasonForbidden},
		{"jobs forbidden", func(w *world) []byte {
			c := w.server.Add("c", "u", "t")
			c.Forbid("jobs", true)
			return c.Kubeconfig("t")
		}, Disconnected, v1alpha1.ReasonForbidden},
		{"no answer", func(w *world) []byte {
			c := w.server.Add("c", "u", "t")
			c.Hang()
			return c.Kubeconfig("t")
		}, Disconnected, v1alpha1.ReasonUnreachable},
		{"nobody there", func(w *world) []byte {
			kubeconfig := w.server.Add("c", "u", "t").Kubeconfig("t")
			w.server.Close()
			return kubeconfig
		}, Disconnected, v1alpha1.ReasonUnreachable},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			worker := w.register("w1", c.kubeconfig(w))
			view := w.untilState(worker, c.state, c.reason)
			if view.Since.IsZero() || view.Message == "" {
				t.Errorf("view: %+v", view)
			}
			err := worker.Client().Get(context.Background(), client.ObjectKey{Name: "kube-system"}, &corev1.Namespace{})
			if !errors.Is(err, ErrNotConnected) && c.name != "jobs forbidden" {
				t.Errorf("a read: %v, want %v", err, ErrNotConnected)
			}
		})
	}
}

func TestOneClusterUnderTwoNames(t *testing.T) {
	w := newWorld(t)
	c := w.server.Add("c", "uid", "t")
	first := w.register("first", c.Kubeconfig("t"))
	w.untilState(first, Ready, v1alpha1.ReasonConnected)
	second := w.register("second", c.Kubeconfig("t"))
	w.untilState(second, Refused, v1alpha1.ReasonDuplicate)
	both := make([]v1alpha1.WorkerCluster, 2)
	both[0].Name, both[0].Status.ClusterUID = "first", "uid"
	both[1].Name, both[1].Status.ClusterUID = "second", "uid"
	w.registry.identities.recordAll(both) // as any look at the WorkerClusters does
	w.registry.remove("first")            // the next probe would be in a minute
	w.untilState(second, Ready, v1alpha1.ReasonConnected)
	w.registry.remove("second")
	w.untilState(w.register("third", c.Kubeconfig("t")), Ready, v1alpha1.ReasonConnected)
}

func TestABlackHoleIsFoundAndHealed(t *testing.T) {
	w := newWorld(t)
	c := w.server.Add("c", "uid", "t")
	worker := w.register("w1", c.Kubeconfig("t"))
	w.untilState(worker, Ready, v1alpha1.ReasonConnected)
	other := w.register("w2", w.server.Add("d", "uid-2", "t").Kubeconfig("t"))
	w.untilState(other, Ready, v1alpha1.ReasonConnected)
	watches := c.Requests("watch jobs")

	before := time.Now()
	c.Hang()
	view := w.untilState(worker, Disconnected, v1alpha1.ReasonUnreachable)
	if view.Since.Before(before) || worker.Synced() {
		t.Errorf("lost since %v, want after %v; synced: %v", view.Since, before, worker.Synced())
	}
	start := time.Now()
	err := worker.Client().Get(context.Background(), client.ObjectKey{Name: "x"}, &corev1.Namespace{})
	if !errors.Is(err, ErrNotConnected) || time.Since(start) > time.Second {
		t.Errorf("a read of a lost worker: %v after %v", err, time.Since(start))
	}
	if other.View().State != Ready {
		t.Errorf("the other worker: %+v", other.View())
	}
	c.Heal()
	if view := w.untilState(worker, Ready, v1alpha1.ReasonConnected); !view.Since.IsZero() {
		t.Errorf("the loss clock still runs: %v", view.Since)
	}
	w.until("the half-open watch is opened anew", func() bool { return c.Requests("watch jobs") > watches })
}

func TestASlowRequestHasTheWorkerProbed(t *testing.T) {
	w := newWorld(t)
	w.registry.options.ProbeInterval = time.Hour
	c := w.server.Add("c", "uid", "t")
	worker := w.register("w1", c.Kubeconfig("t"))
	w.untilState(worker, Ready, v1alpha1.ReasonConnected)
	c.Hang()
	err := worker.Client().Get(context.Background(), client.ObjectKey{Name: "x"}, &corev1.Namespace{})
	if err == nil {
		t.Error("a read of a black hole succeeded")
	}
	w.untilState(worker, Disconnected, v1alpha1.ReasonUnreachable)
}

func TestAWatchsEndIsNoLoss(t *testing.T) {
	w := newWorld(t)
	c := w.server.Add("c", "uid", "t")
	worker := w.register("w1", c.Kubeconfig("t"))
	w.untilState(worker, Ready, v1alpha1.ReasonConnected)
	w.until("capacity", func() bool { return worker.View().Capacity.Known })
	probes, watches := c.Requests("get kube-system"), c.Requests("watch jobs")
	w.server.Cut()
	w.until("the watch is opened again", func() bool {
		return c.Requests("watch jobs") > watches && c.Requests("get kube-system") > probes
	})
	if view := worker.View(); view.State != Ready {
		t.Errorf("lost: %+v", view)
	}
}

// An API server that no longer knows what has happened since has the watches begin anew.
func TestAnExpiredWatchIsNoLoss(t *testing.T) {
	w := newWorld(t)
	c := w.server.Add("c", "uid", "t")
	worker := w.register("w1", c.Kubeconfig("t"))
	w.untilState(worker, Ready, v1alpha1.ReasonConnected)
	w.until("it's read", worker.Synced)
	c.Put("jobs", mirrorNamed("before")) // client-go begins anew by itself if nothing has come
	w.until("the first mirror is known", func() bool { return worker.feed.Cached() == 1 })
	c.BreakWatches(false)
	c.Put("jobs", mirrorNamed("after"))
	w.until("the next mirror is known", func() bool {
		if view := worker.View(); view.State != Ready {
			t.Fatalf("lost: %+v", view)
		}
		return worker.feed.Cached() == 2
	})
}

func TestRotatedCredentials(t *testing.T) {
	w := newWorld(t)
	c := w.server.Add("c", "uid", "old")
	worker := w.register("w1", c.Kubeconfig("old"))
	w.untilState(worker, Ready, v1alpha1.ReasonConnected)
	watches := c.Requests("watch jobs")

	c.Accept("new")
	w.untilState(worker, Disconnected, v1alpha1.ReasonUnauthorized)
	if again := w.register("w1", c.Kubeconfig("new")); again != worker {
		t.Error("the worker is another one")
	}
	w.untilState(worker, Ready, v1alpha1.ReasonConnected)
	w.until("the watch is opened with the new credentials", func() bool { return c.Requests("watch jobs") > watches })
	if err := worker.Client().Get(context.Background(), client.ObjectKey{Name: "kube-system"}, &corev1.Namespace{}); err != nil {
		t.Errorf("a read with the new credentials: %v", err)
	}
}

func TestAnotherClusterIsRefused(t *testing.T) {
	w := newWorld(t)
	c := w.server.Add("c", "uid", "t")
	worker := w.register("w1", c.Kubeconfig("t"))
	w.untilState(worker, Ready, v1alpha1.ReasonConnected)
	c.Become("another")
	if view := w.untilState(worker, Refused, v1alpha1.ReasonClusterChanged); view.ClusterUID != "uid" {
		t.Errorf("the cluster's UID became %q", view.ClusterUID)
	}
	// Also when it was another process that knew it.
	other := w.configure("w2", w.server.Add("d", "uid-d", "t").Kubeconfig("t"), Settings{}, known{clusterUID: "uid-e"})
	w.untilState(other, Refused, v1alpha1.ReasonClusterChanged)
}

// mirrorNamed is a mirror of this hub's.
func mirrorNamed(name string) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: name, Labels: map[string]string{v1alpha1.LabelOrigin: "origin"},
		Annotations: map[string]string{v1alpha1.AnnotationHubUID: "uid-of-" + name},
	}}
}

// A watch that goes on after a restore shows nothing until the cluster's resourceVersion has caught
// up.
func TestRestoredWorkerIsReadAnew(t *testing.T) {
	w := newWorld(t)
	c := w.server.Add("c", "uid", "t")
	keptKey, lostKey := types.NamespacedName{Namespace: "team", Name: "kept"}, types.NamespacedName{Namespace: "team", Name: "lost"}
	c.Put("jobs", mirrorNamed("kept"))
	restore := c.Backup()
	worker := w.register("w1", c.Kubeconfig("t"))
	c.Put("jobs", mirrorNamed("lost"))
	w.until("both are known", func() bool { return worker.Synced() && worker.feed.Cached() == 2 })
	before := c.Requests("get revision")
	w.until("a probe has seen the second", func() bool { return c.Requests("get revision") > before+1 })

	restore()
	w.untilState(worker, Refused, v1alpha1.ReasonRestored)
	if n := len(w.registry.MirrorHolders(lostKey)); n != 1 {
		t.Errorf("%d workers have the mirror, before the restore is dealt with", n)
	}
	w.registry.renew("w1")
	worker = w.register("w1", c.Kubeconfig("t"))
	w.untilState(worker, Ready, v1alpha1.ReasonConnected)
	if all := worker.Mirrors(); len(all) != 1 || all[0].Key != keptKey {
		t.Errorf("its mirrors are %+v", all)
	}
	if n := len(w.registry.MirrorHolders(lostKey)); n != 0 {
		t.Errorf("%d workers have a mirror that there isn't", n)
	}
	if n := w.restored.Load(); n != 1 {
		t.Errorf("the listener was told %d times", n)
	}
	c.Put("jobs", mirrorNamed("lost"))
	w.until("changes are seen", func() bool { return worker.feed.Cached() == 2 })
}

// An API server that says nothing of its state, or nothing that can be compared, is used as it is.
func TestRevisionsThatSayNothing(t *testing.T) {
	w := newWorld(t)
	c := w.server.Add("c", "uid", "t")
	worker := w.register("w1", c.Kubeconfig("t"))
	w.untilState(worker, Ready, v1alpha1.ReasonConnected)
	for _, answer := range []string{"", "x", "18446744073709551616"} {
		before := c.Requests("get revision")
		c.Answer("get revision", func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(rw).Encode(batchv1.JobList{
				TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "JobList"}, ListMeta: metav1.ListMeta{ResourceVersion: answer}})
		})
		w.until("it was asked twice", func() bool { return c.Requests("get revision") > before+1 })
		if v := worker.View(); v.State != Ready {
			t.Errorf("after the answer %q it's %s: %s", answer, v.State, v.Message)
		}
	}
}

func TestTheLossClockOutlivesTheManager(t *testing.T) {
	w := newWorld(t)
	c := w.server.Add("c", "uid", "t")
	c.Hang()
	lost := time.Now().Add(-10 * time.Minute)
	worker := w.configure("w1", c.Kubeconfig("t"), Settings{}, known{clusterUID: "uid", since: lost})
	if view := w.untilState(worker, Disconnected, v1alpha1.ReasonUnreachable); !view.Since.Equal(lost) {
		t.Errorf("lost since %v, want %v", view.Since, lost)
	}
}

func TestNodesThatMayNotBeRead(t *testing.T) {
	w := newWorld(t)
	c := w.server.Add("c", "uid", "t")
	c.Forbid("pods", true)
	worker := w.register("w1", c.Kubeconfig("t"))
	w.until("it's said", func() bool { return worker.View().Capacity.Missing != "" })
	w.untilState(worker, Ready, v1alpha1.ReasonConnected)
	w.configure("w1", c.Kubeconfig("t"), Settings{Spec: v1alpha1.WorkerClusterSpec{Capacity: v1alpha1.CapacityUnlimited}}, known{})
	w.until("it's no matter any more", func() bool { return worker.View().Capacity == CapacityState{} })
}

// ahead is a clock that is ahead of the machine's.
type ahead struct {
	clock.WithDelayedExecution
	by time.Duration
}

func (c ahead) Now() time.Time { return c.WithDelayedExecution.Now().Add(c.by) }

// The hub's clock is the manager's, and not that of the machine.
func TestWorkerClockIsComparedWithTheManagers(t *testing.T) {
	w := newStandby(t, func(o *Options) { o.Clock = ahead{clock.RealClock{}, 24 * time.Hour} })
	worker := w.register("a", w.server.Add("a", "uid-a", "t").Kubeconfig("t"))
	w.untilSeen(worker, Ready)
	if d := worker.link.ClockAhead(); d < 23*time.Hour {
		t.Errorf("the hub's clock is ahead by %v, want a day", d)
	}
}

// TestHasMirrors: it's asked for each change of a mirror, so it looks at none of them.
func TestHasMirrors(t *testing.T) {
	w := newWorld(t)
	c := w.server.Add("c", "uid", "t")
	worker := w.register("w1", c.Kubeconfig("t"))
	w.until("it's read", worker.Synced)
	if worker.HasMirrors() {
		t.Error("there is none")
	}
	for i := range 100 {
		c.Put("jobs", mirrorNamed(fmt.Sprint("m", i)))
	}
	w.until("all are known", func() bool { return worker.feed.Cached() == 100 })
	if allocations := testing.AllocsPerRun(1000, func() { worker.HasMirrors() }); !worker.HasMirrors() || allocations >= 1 {
		t.Errorf("%v, with %v allocations", worker.HasMirrors(), allocations)
	}
	for i := range 100 {
		if err := worker.Client().Delete(t.Context(), mirrorNamed(fmt.Sprint("m", i))); err != nil {
			t.Fatal(err)
		}
	}
	w.until("all are gone", func() bool { return !worker.HasMirrors() })
}
