package worker

import (
	"errors"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What refuses a new Pod with a conflict or as not found doesn't go away with a newer cache: it's
// an error, for which the queue backs off. The same of an object that exists is none.
func TestRefusals(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for name, row := range map[string]struct {
		verb  string
		err   error
		fails bool
	}{
		"a quota that changes":  {"create", apierrors.NewConflict(schema.GroupResource{Resource: "resourcequotas"}, "q", errors.New("modified")), true},
		"no ServiceAccount":     {"create", apierrors.NewNotFound(schema.GroupResource{Resource: "serviceaccounts"}, "runner"), true},
		"forbidden":             {"create", apierrors.NewForbidden(pods, "p", errors.New("quota")), true},
		"the Job has changed":   {"status", apierrors.NewConflict(schema.GroupResource{Resource: "jobs"}, "job", errors.New("modified")), false},
		"the Job is gone":       {"status", apierrors.NewNotFound(schema.GroupResource{Resource: "jobs"}, "job"), false},
		"the status is refused": {"status", apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "job", errors.New("no")), true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, Options{}, aJob())
			c.refuse = func(verb string, _ client.Object) error {
				if verb == row.verb {
					return row.err
				}
				return nil
			}
			result, err := c.sync()
			if (err != nil) != row.fails || err == nil && result.RequeueAfter == 0 {
				t.Errorf("%+v, %v", result, err)
			}
		})
	}
}

// A Job whose Pods may not be released is left to the queue's back-off. Only what is due by the
// clock comes earlier.
func TestRefusedFinalizersBackOff(t *testing.T) {
	for name, row := range map[string]struct {
		job  *batchv1.Job
		want []time.Duration
	}{
		"nothing is due": {aJob(), nil},
		"a deadline":     {aJob(func(j *batchv1.Job) { j.Spec.ActiveDeadlineSeconds = ptr.To[int64](60) }), []time.Duration{time.Minute}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, Options{}, row.job)
			c.mustSync()
			for _, p := range c.pods() {
				c.end(&p, 0)
			}
			c.refuse = func(verb string, _ client.Object) error {
				if verb == "patch" {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "p", errors.New("no"))
				}
				return nil
			}
			for range 3 {
				queue := &delays{}
				c.jobs.queue = queue
				if _, err := c.sync(); err == nil || !slices.Equal(queue.added, row.want) {
					t.Errorf("again after %v, %v", queue.added, err)
				}
			}
		})
	}
}
