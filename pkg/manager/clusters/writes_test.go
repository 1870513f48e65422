package clusters

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

func TestAStatusThatTheCacheDoesntHaveYetIsntWrittenAgain(t *testing.T) {
	cluster := func(uid types.UID, version string) *v1alpha1.WorkerCluster {
		c := given().cluster
		c.UID, c.ResourceVersion = uid, version
		return c
	}
	if got := (ownWrite{}).latest(cluster("one", "5")); got.ResourceVersion != "5" {
		t.Errorf("before any write: %s", got.ResourceVersion)
	}
	w := ownWrite{noon, cluster("one", "7")}
	for cached, want := range map[string]string{"5": "7", "7": "7", "12": "12"} {
		if got := w.latest(cluster("one", cached)).ResourceVersion; got != want {
			t.Errorf("the cache has %s: %s, want %s", cached, got, want)
		}
	}
	if got := w.latest(cluster("another", "5")).ResourceVersion; got != "5" {
		t.Errorf("made anew: %s", got)
	}
}
