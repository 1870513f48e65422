package clusters

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

func TestAStatusThatTheCacheDoesntHaveYetIsntWrittenAgain(t *testing.T) {
	cluster := func(uid types.UID, version string) *v1alpha1.WorkerCluster {
		c := given().cluster
		c.UID, c.ResourceVersion = uid, version
		return c
	}
	w := newWrites()
	if got := w.newer(cluster("one", "5")); got.ResourceVersion != "5" || !w.last("w1").IsZero() {
		t.Errorf("before any write: %s, written %s", got.ResourceVersion, w.last("w1"))
	}
	w.record(cluster("one", "7"), noon)
	for cached, want := range map[string]string{"5": "7", "7": "7", "12": "12"} {
		if got := w.newer(cluster("one", cached)).ResourceVersion; got != want {
			t.Errorf("the cache has %s: %s, want %s", cached, got, want)
		}
	}
	if got := w.newer(cluster("another", "5")).ResourceVersion; got != "5" {
		t.Errorf("made anew: %s", got)
	}
	if at := w.last("w1"); !at.Equal(noon) {
		t.Errorf("written %s", at.Format(time.TimeOnly))
	}
	w.forget("w1")
	if got := w.newer(cluster("one", "5")).ResourceVersion; got != "5" {
		t.Errorf("forgotten: %s", got)
	}
}
