package worker

import (
	"errors"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// Pods that must not be deleted are untracked once, so that nothing but the queue's back-off brings
// the next attempt. None is counted. Once they may be deleted, they are; if they're wanted again
// before that, they're tracked.
func TestDeletionsRefusedForLong(t *testing.T) {
	for name, resumed := range map[string]bool{"until they're allowed": false, "until the Job is resumed": true} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, Options{}, aJob())
			c.mustSync()
			c.suspend(true)
			c.refuse = func(verb string, _ client.Object) error {
				if verb == "delete" {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "p", errors.New("no"))
				}
				return nil
			}
			var versions []string
			for i := range 5 {
				if _, err := c.sync(); !apierrors.IsForbidden(err) {
					t.Fatalf("got %v", err)
				}
				if i > 0 && !slices.Equal(versions, c.podVersions()) {
					t.Errorf("attempt %d changes Pods from %v to %v", i, versions, c.podVersions())
				}
				versions = c.podVersions()
			}
			if s := c.job().Status; s.Active != 2 || s.Failed != 0 || ptr.Deref(s.Terminating, 0) != 0 {
				t.Errorf("status %+v", s)
			}
			if resumed {
				c.suspend(false)
				c.mustSync()
				for _, p := range c.pods() {
					if !slices.Contains(p.Finalizers, v1alpha1.FinalizerJobTracking) {
						t.Errorf("Pod %s isn't tracked", p.Name)
					}
				}
				return
			}
			c.refuse = nil
			c.mustSync()
			if s := c.job().Status; len(c.pods()) != 0 || s.Active != 0 || s.Failed != 0 {
				t.Errorf("%d Pods, status %+v", len(c.pods()), s)
			}
		})
	}
}

// suspend suspends or resumes the Job, as its user.
func (c *cluster) suspend(yes bool) {
	c.t.Helper()
	job := c.job()
	job.Spec.Suspend = ptr.To(yes)
	job.Generation++
	if err := c.api.Update(c.t.Context(), job); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) podVersions() []string {
	c.t.Helper()
	var out []string
	for _, p := range c.pods() {
		out = append(out, p.ResourceVersion)
	}
	return out
}

// Only a Pod whose deletion is refused counts as such. One whose finalizer can't be removed may be
// deleted, and comes before those.
func TestAFinalizerThatStaysRefusesNoDeletion(t *testing.T) {
	for verb, refused := range map[string]int{"patch": 0, "delete": 2} {
		c := newCluster(t, Options{}, aJob())
		c.mustSync()
		c.suspend(true)
		c.refuse = func(sent string, _ client.Object) error {
			if sent == verb {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "p", errors.New("no"))
			}
			return nil
		}
		if _, err := c.sync(); !apierrors.IsForbidden(err) {
			t.Fatalf("got %v", err)
		}
		known := c.jobs.memory.of(c.job())
		if len(known.refused) != refused || len(known.deleted) > 0 {
			t.Errorf("%s is refused: %d count as refused, %d as deleted", verb, len(known.refused), len(known.deleted))
		}
	}
}
