package clusters

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

func TestRemovalWaitsForTheLastMirror(t *testing.T) {
	h := newHub(t)
	cluster := h.Cluster("w1")
	h.register("w1", cluster.KubeconfigBytes())
	h.until("w1", ready(v1alpha1.ReasonConnected))
	namespace := h.Namespace(cluster)
	key := h.mirrored(cluster, "w1", namespace, "job")
	h.placed.set("w1", 1)

	h.unregister("w1")
	wc := h.until("w1", schedulable(v1alpha1.ReasonRemoving))
	if text := message(wc, v1alpha1.ConditionSchedulable); !strings.Contains(text, "1 unfinished Jobs, 1 mirrors") {
		t.Errorf("message %q", text)
	}
	if view := h.worker("w1").View(); !view.Removing || view.Spec.RemovalPolicy != v1alpha1.RemovalWait {
		t.Errorf("view %+v", view)
	}
	h.placed.set("w1", 0)
	h.registry.PlacementsChanged("w1")
	h.until("w1", func(wc *v1alpha1.WorkerCluster) bool {
		return strings.Contains(message(wc, v1alpha1.ConditionSchedulable), "0 unfinished Jobs, 1 mirrors")
	})
	h.deleteJob("w1", key)
	h.untilGone("w1")
	h.untilEvent("WorkerCluster", "w1", "Removed")
	h.check(h.await(func() bool { _, ok := h.registry.Get("w1"); return !ok }))
}

func (h *hub) deleteJob(cluster string, key types.NamespacedName) {
	h.t.Helper()
	background := metav1.DeletePropagationBackground
	h.check(h.Cluster(cluster).Client().BatchV1().Jobs(key.Namespace).Delete(h.Context(), key.Name, metav1.DeleteOptions{PropagationPolicy: &background}))
}

func TestALostWorkerIsRemovedOnlyAsAnOrphan(t *testing.T) {
	h := newHub(t)
	cluster := h.Cluster("w1")
	h.register("lost", cluster.ProxyKubeconfigBytes())
	h.until("lost", ready(v1alpha1.ReasonConnected))
	h.mirrored(cluster, "lost", h.Namespace(cluster), "job")
	cluster.Proxy().Reset()
	t.Cleanup(cluster.Proxy().Heal)
	h.until("lost", ready(v1alpha1.ReasonUnreachable))
	h.unregister("lost")
	h.until("lost", func(wc *v1alpha1.WorkerCluster) bool {
		return strings.Contains(message(wc, v1alpha1.ConditionSchedulable), "Orphan to remove it")
	})
	h.edit("lost", func(s *v1alpha1.WorkerClusterSpec) { s.RemovalPolicy = v1alpha1.RemovalOrphan })
	h.untilGone("lost")
	if e := h.untilEvent("WorkerCluster", "lost", "Removed"); e.Type != "Warning" || !strings.Contains(e.Message, "1 Jobs known of") {
		t.Errorf("event %s: %s", e.Type, e.Message)
	}
}

// The hub still has a Job placed on a worker that is empty: with Orphan that doesn't hold it, and
// what is left of the Secret in a cache doesn't bring it back.
func TestAnOrphanIsRemovedForGood(t *testing.T) {
	h := newHub(t)
	h.register("w1", h.Cluster("w1").KubeconfigBytes())
	h.until("w1", ready(v1alpha1.ReasonConnected))
	h.placed.set("w1", 1)
	h.edit("w1", func(s *v1alpha1.WorkerClusterSpec) { s.RemovalPolicy = v1alpha1.RemovalOrphan })
	h.unregister("w1")
	h.untilGone("w1")
	h.register("next", h.Cluster("w2").KubeconfigBytes())
	h.until("next", ready(v1alpha1.ReasonConnected))
	var back v1alpha1.WorkerCluster
	if err := h.client.Get(h.Context(), types.NamespacedName{Name: "w1"}, &back); !apierrors.IsNotFound(err) {
		t.Errorf("it came back: %+v, %v", back.Status, err)
	}
}

func TestADeletedWorkerClusterComesBack(t *testing.T) {
	h := newHub(t)
	h.register("w1", h.Cluster("w1").KubeconfigBytes())
	first := h.until("w1", ready(v1alpha1.ReasonConnected))
	h.check(h.client.Delete(h.Context(), first))
	second := h.until("w1", func(wc *v1alpha1.WorkerCluster) bool {
		return wc.UID != first.UID && ready(v1alpha1.ReasonConnected)(wc)
	})
	if second.Status.ClusterUID != first.Status.ClusterUID {
		t.Errorf("status %+v", second.Status)
	}
}
