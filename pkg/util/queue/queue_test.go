package queue

import (
	"context"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

// What is added before the controller starts is reconciled once, by priority and in its order; then
// what is added while it runs.
func TestWhatComesEarlyIsKept(t *testing.T) {
	q := New("test", nil)
	reconciled := make(chan string)
	c, err := controller.NewUnmanaged("test", controller.Options{
		MaxConcurrentReconciles: 1,
		NewQueue:                Use(q),
		Reconciler: reconcile.Func(func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
			reconciled <- r.Name
			return reconcile.Result{}, nil
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	q.Add(request("first"))
	q.Add(request("second"))
	q.Add(request("first"))
	q.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(1)}, request("urgent"))
	q.AddAfter(request("later"), time.Hour)

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- c.Start(ctx) }()
	got := []string{<-reconciled, <-reconciled, <-reconciled}
	q.Add(request("late"))
	got = append(got, <-reconciled)
	if want := []string{"urgent", "first", "second", "late"}; !slices.Equal(got, want) {
		t.Errorf("reconciled %q, want %q", got, want)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if !q.ShuttingDown() {
		t.Error("the queue outlives its controller")
	}
}
