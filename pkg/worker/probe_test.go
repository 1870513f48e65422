package worker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

var probeKey = types.NamespacedName{Namespace: "jobferry-system", Name: "jobferry-worker-probe"}

func aProbe(c client.WithWatch) *probe {
	return &probe{client: c, live: c, key: probeKey, wait: 100 * time.Millisecond, every: time.Millisecond, passed: make(chan struct{})}
}

// another Job controller: it writes the status of each Job that is created.
func anotherController(c client.WithWatch) client.WithWatch {
	return interceptor.NewClient(c, interceptor.Funcs{
		Create: func(ctx context.Context, w client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if err := w.Create(ctx, obj, opts...); err != nil {
				return err
			}
			job := obj.(*batchv1.Job)
			job.Status.Ready = ptr.To[int32](0)
			return w.Status().Update(ctx, job)
		},
	})
}

func (c *cluster) probeExists() bool {
	c.t.Helper()
	err := c.api.Get(c.t.Context(), probeKey, &batchv1.Job{})
	if client.IgnoreNotFound(err) != nil {
		c.t.Fatal(err)
	}
	return err == nil
}

// What an earlier process has left behind says nothing about now.
func TestProbeOfAnEarlierProcess(t *testing.T) {
	c := newCluster(t, Options{})
	p := aProbe(c.api)
	old := p.job()
	old.UID = "old"
	if err := c.api.Create(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	old.Status.Ready = ptr.To[int32](0)
	if err := c.api.Status().Update(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	if err := p.begin(t.Context()); err != nil || !c.probeExists() {
		t.Errorf("error %v, there's a new probe: %v", err, c.probeExists())
	}
}

func TestProbeFindsAnotherController(t *testing.T) {
	const want = `has written the status of Job jobferry-system/jobferry-worker-probe`
	t.Run("at the start", func(t *testing.T) {
		c := newCluster(t, Options{})
		p := aProbe(anotherController(c.api))
		if err := p.Start(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := p.await(ctx); err == nil || c.probeExists() {
			t.Errorf("the controllers may start: %v; the probe is left: %v", err == nil, c.probeExists())
		}
	})
	t.Run("later", func(t *testing.T) {
		c := newCluster(t, Options{})
		p := aProbe(c.api)
		go func() {
			<-p.passed
			var job batchv1.Job
			if err := c.api.Get(t.Context(), probeKey, &job); err != nil {
				t.Error(err)
			}
			job.Status.Ready = ptr.To[int32](0)
			if err := c.api.Status().Update(t.Context(), &job); err != nil {
				t.Error(err)
			}
		}()
		if err := p.Start(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	})
	t.Run("once somebody has deleted the probe", func(t *testing.T) {
		c := newCluster(t, Options{})
		created := 0
		later := anotherController(c.api)
		p := aProbe(interceptor.NewClient(c.api, interceptor.Funcs{
			Create: func(ctx context.Context, w client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
				if created++; created == 1 {
					return w.Create(ctx, obj, opts...)
				}
				return later.Create(ctx, obj, opts...)
			},
		}))
		go func() {
			<-p.passed
			if err := c.api.Delete(t.Context(), p.job()); err != nil {
				t.Error(err)
			}
		}()
		if err := p.Start(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	})
}

// A process that ends removes its probe.
func TestProbeEnds(t *testing.T) {
	c := newCluster(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	looked := 0
	p := aProbe(interceptor.NewClient(c.api, interceptor.Funcs{
		Get: func(ctx context.Context, w client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if looked++; looked == 50 {
				cancel()
			}
			return w.Get(ctx, key, obj, opts...)
		},
	}))
	if err := p.Start(ctx); err != nil || c.probeExists() {
		t.Errorf("error %v, the probe is there: %v", err, c.probeExists())
	}
}

// A cluster that lets nobody create the probe has its Jobs run, at once and later.
func TestProbeIsRefused(t *testing.T) {
	c := newCluster(t, Options{})
	tried := 0
	p := aProbe(interceptor.NewClient(c.api, interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			tried++
			return apierrors.NewForbidden(batchv1.Resource("jobs"), probeName, errors.New("no"))
		},
	}))
	p.wait = time.Hour
	if err := p.begin(t.Context()); err != nil || tried != 1 {
		t.Errorf("error %v, %d requests", err, tried)
	}
}

// The probe is nobody's Job: this controller leaves it alone, and whatever else has its name isn't
// it.
func TestProbeIsNotSynced(t *testing.T) {
	o := Options{}.DropIn().withDefaults()
	named := func(namespace, name string) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	if o.manages(named("jobferry-system", "jobferry-worker-probe")) {
		t.Error("it runs the probe")
	}
	if !o.manages(named("default", "jobferry-worker-probe")) || !o.manages(named("jobferry-system", "job")) {
		t.Error("it doesn't run other Jobs")
	}
}

func TestStatusWriters(t *testing.T) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
		{Manager: "kubectl"}, {Manager: "kube-controller-manager", Subresource: "status"},
	}}}
	if got := statusWriters(job); got != `"kube-controller-manager"` {
		t.Errorf("got %s", got)
	}
}
