package worker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/jobferry/jobferry/pkg/util/costtest"
	"github.com/jobferry/jobferry/pkg/worker/plan"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// A request to create a Pod that got no answer isn't sent again before the API server was asked for
// its Pods, however long the cache shows none of them. The API server is asked once.
func TestNoAnswerMakesNoSecondPod(t *testing.T) {
	for name, job := range map[string]*batchv1.Job{
		"not indexed": aJob(),
		"indexed":     aJob(func(j *batchv1.Job) { j.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion) }),
		"a shard":     aShard("3,4", "3,4"),
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, Options{}, job)
			lists, lost := 0, 0
			c.live(interceptor.Funcs{List: func(ctx context.Context, w client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				lists++
				return w.List(ctx, list, opts...)
			}})
			c.cache(interceptor.Funcs{
				Create: func(ctx context.Context, w client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
					if err := w.Create(ctx, obj, opts...); err != nil || lost > 0 {
						return err
					}
					lost++
					return errors.New("connection reset by peer")
				},
				List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return nil },
			})
			if _, err := c.sync(); err == nil {
				t.Fatal("no error")
			}
			before := lists
			for range 3 {
				c.mustSync()
			}
			if pods := c.pods(); len(pods) != 2 || lists != before+1 || c.job().Status.Active != 2 {
				t.Errorf("%d Pods, %d lists, status %+v", len(pods), lists-before, c.job().Status)
			}
		})
	}
}

// The API server's Pods aren't known, so nothing is done.
func TestUnansweredAndUnconfirmed(t *testing.T) {
	c := newCluster(t, Options{}, aJob())
	c.refuse = func(string, client.Object) error {
		c.refuse = nil
		return errors.New("connection reset by peer")
	}
	if _, err := c.sync(); err == nil {
		t.Fatal("no error")
	}
	c.live(interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("no answer")
	}})
	sent := len(c.writes)
	if _, err := c.sync(); err == nil || len(c.writes) != sent {
		t.Errorf("error %v, writes %v", err, c.writes[sent:])
	}
}

// Of the Pods without a controller, a Job is to adopt those that its selector matches, and none
// while it's being deleted.
func TestPodsToAdoptAreConfirmed(t *testing.T) {
	isBare := func(p *corev1.Pod) { p.OwnerReferences = nil }
	others := func(p *corev1.Pod) { p.OwnerReferences[0].UID = "another" }
	for deleted, want := range map[bool]int{false: 2, true: 1} {
		job := aJob(func(j *batchv1.Job) {
			if deleted {
				j.DeletionTimestamp = ptr.To(metav1.Now())
			}
		})
		c := newCluster(t, Options{}, aPod("own"), aPod("bare", isBare), aPod("other's", others),
			aPod("elsewhere", isBare, func(p *corev1.Pod) { p.Labels = nil }))
		known := c.jobs.memory.of(job)
		if err := c.jobs.confirmPods(t.Context(), job, nil, known); err != nil || len(known.created) != want {
			t.Errorf("deleted %t: %d Pods, %v", deleted, len(known.created), err)
		}
	}
}

func TestAnswered(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	refused := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	for name, row := range map[string]struct {
		err  error
		want bool
	}{
		"forbidden":          {apierrors.NewForbidden(pods, "p", errors.New("quota")), true},
		"conflict":           {apierrors.NewConflict(pods, "p", errors.New("changed")), true},
		"internal error":     {apierrors.NewInternalError(errors.New("etcd")), false},
		"timeout":            {apierrors.NewTimeoutError("slow", 1), false},
		"broken connection":  {errors.New("EOF"), false},
		"reset":              {os.NewSyscallError("read", syscall.ECONNRESET), false},
		"connection refused": {refused, true},
		"deadline":           {context.DeadlineExceeded, false},
	} {
		if got := answered(row.err); got != row.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A page has so few Pods that what they're made from fits in a mebibyte.
func TestPagesOfLargePods(t *testing.T) {
	for size, want := range map[int]int64{0: podsPerPage, 2 << 10: podsPerPage, 10 << 10: 85, 600 << 10: 1, 1 << 20: 1} {
		job := aJob(func(j *batchv1.Job) { j.Spec.Template.Spec.Containers[0].Command = []string{strings.Repeat("x", size)} })
		if got := pageOf(job); got > want || got < want*9/10 {
			t.Errorf("%d Pods of %d bytes in a page, not %d", got, size, want)
		}
	}
}

// A selector may be larger than what an API server takes in a URL: the Job's Pods are found all the
// same, among all of the namespace.
func TestASelectorThatIsTooLargeForAURL(t *testing.T) {
	job := aJob(func(j *batchv1.Job) {
		values := []string{"own"}
		for i := range 20_000 {
			values = append(values, fmt.Sprintf("%s-%d", strings.Repeat("x", 50), i))
		}
		j.Spec.ManualSelector = ptr.To(true)
		j.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: values},
		}}
	})
	app := func(app string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Labels = map[string]string{"app": app} }
	}
	isBare := func(p *corev1.Pod) { p.OwnerReferences = nil }
	c := newCluster(t, Options{}, aPod("own", app("own")), aPod("bare", app("own"), isBare), aPod("another's", app("other"), isBare))
	c.live(interceptor.Funcs{List: func(ctx context.Context, w client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		options := (&client.ListOptions{}).ApplyOptions(opts)
		if len(options.LabelSelector.String()) > 1<<20 {
			return apierrors.NewGenericServerResponse(http.StatusRequestHeaderFieldsTooLarge, "get", schema.GroupResource{Resource: "pods"}, "", "", 0, true)
		}
		return w.List(ctx, list, opts...)
	}})
	known := c.jobs.memory.of(job)
	if err := c.jobs.confirmPods(t.Context(), job, nil, known); err != nil || len(known.created) != 2 {
		t.Errorf("%d Pods, %v", len(known.created), err)
	}
}

// A large selector isn't made one of Kubernetes', which compares each expression with each Pod.
func TestALargeSelectorIsntComparedByExpressions(t *testing.T) {
	job := aJob(func(j *batchv1.Job) {
		j.Spec.ManualSelector, j.Spec.Selector = ptr.To(true), &metav1.LabelSelector{MatchLabels: map[string]string{"app": "own"}}
		for i := range 40_000 {
			none := metav1.LabelSelectorRequirement{Key: fmt.Sprintf("x%05d", i), Operator: metav1.LabelSelectorOpDoesNotExist}
			j.Spec.Selector.MatchExpressions = append(j.Spec.Selector.MatchExpressions, none)
		}
	})
	c := newCluster(t, Options{}, aPod("own", func(p *corev1.Pod) { p.Labels = map[string]string{"app": "own"} }))
	known := c.jobs.memory.of(job)
	known.selector = plan.SelectorOf(job) // its cost is another's
	cost := costtest.Of(func() {
		if err := c.jobs.confirmPods(t.Context(), job, nil, known); err != nil || len(known.created) != 1 {
			t.Errorf("%d Pods, %v", len(known.created), err)
		}
	})
	if cost > 1<<20 {
		t.Errorf("%d KiB are allocated", cost>>10)
	}
}
