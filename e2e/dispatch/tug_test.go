package dispatch_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
)

// tugsFor is how long somebody in the worker pulls the other way, once the manager has pulled back.
const tugsFor = 5 * time.Second

// Somebody in the worker undoes whatever the manager does. Neither gives in, but the manager has
// patience.
func TestTugOfWarDoesNotLoopHot(t *testing.T) {
	for _, test := range []struct {
		name string
		pull func(context.Context, *ferrytest.Ferry, *batchv1.Job)
		// most is the number of writes that the manager may make meanwhile, to the worker and the
		// hub.
		most int
	}{
		{"mirror deleted again and again", deleteAtOnce, 25},
		{"mirror suspended again and again", suspendAtOnce, 25},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := ferrytest.For(t)
			f.RunManager()
			f.RegisterPuppet()
			f.LeaveWorker(ferrytest.PuppetName)
			ctx, cancel := context.WithCancel(f.Context())
			defer cancel()
			pulls := pullBack(ctx, f, test.pull)
			f.Submit("job", ferrytest.OnPuppet)
			for n := range 2 {
				select {
				case <-pulls:
				case <-ctx.Done():
					t.Fatalf("pulled %d times", n)
				}
			}
			<-time.After(tugsFor)
			cancel()
			if n := writesAbout(t, f); n > test.most {
				t.Errorf("%d writes in %s", n, tugsFor)
			}
		})
	}
}

// pullBack has somebody react to each change of a mirror; what it returns counts.
func pullBack(ctx context.Context, f *ferrytest.Ferry, pull func(context.Context, *ferrytest.Ferry, *batchv1.Job)) <-chan struct{} {
	pulls := make(chan struct{}, 10000)
	react := func(o any) {
		pull(ctx, f, o.(*batchv1.Job))
		pulls <- struct{}{}
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(f.Cluster(ferrytest.PuppetName).Client().BatchV1().RESTClient(),
			"jobs", f.NS, fields.Everything()),
		ObjectType: &batchv1.Job{},
		Handler:    cache.ResourceEventHandlerFuncs{AddFunc: react, UpdateFunc: func(_, o any) { react(o) }},
	})
	go informer.RunWithContext(ctx)
	return pulls
}

func deleteAtOnce(ctx context.Context, f *ferrytest.Ferry, j *batchv1.Job) {
	if j.DeletionTimestamp != nil {
		return
	}
	background := metav1.DeletePropagationBackground
	_ = f.Cluster(ferrytest.PuppetName).Client().BatchV1().Jobs(f.NS).
		Delete(ctx, j.Name, metav1.DeleteOptions{PropagationPolicy: &background}) // next time
}

func suspendAtOnce(ctx context.Context, f *ferrytest.Ferry, j *batchv1.Job) {
	if ptr.Deref(j.Spec.Suspend, false) {
		return
	}
	_, _ = f.Cluster(ferrytest.PuppetName).Client().BatchV1().Jobs(f.NS).
		Patch(ctx, j.Name, types.MergePatchType, []byte(suspend), metav1.PatchOptions{}) // next time
}

// writesAbout counts the manager's writes about this test's Jobs, on the hub and in the puppet.
func writesAbout(t *testing.T, f *ferrytest.Ferry) int {
	t.Helper()
	sum := 0
	for _, c := range []*rig.Cluster{f.Hub, f.Cluster(ferrytest.PuppetName)} {
		requests, err := c.Requests()
		if err != nil {
			t.Fatal(err)
		}
		counts := rig.CountBy(requests, func(r rig.Request) string {
			if !strings.HasPrefix(r.UserAgent, ferrytest.UserAgent) || r.Object.Namespace != f.NS {
				return ""
			}
			return fmt.Sprintf("%s %s/%s", r.Verb, r.Object.Resource, r.Object.Subresource)
		})
		t.Logf("%s: %v", c.Name(), counts)
		for _, n := range counts {
			sum += n
		}
	}
	return sum
}
