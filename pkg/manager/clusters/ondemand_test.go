package clusters

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/placement"
)

var anyJob = types.NamespacedName{Namespace: "n"}

// TestVolumesAreReadFromTheFirstJobWithClaimsOn, whether the nodes are or not, and that Job is
// tried again when they are known.
func TestVolumesAreReadFromTheFirstJobWithClaimsOn(t *testing.T) {
	for _, mode := range []v1alpha1.CapacityMode{v1alpha1.CapacityNodes, v1alpha1.CapacityUnlimited} {
		t.Run(string(mode), func(t *testing.T) {
			w := newWorld(t)
			c := w.server.Add("c", "uid", "t")
			c.Answer("watch persistentvolumeclaims", http.NotFound)
			c.Answer("get persistentvolumeclaims", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprint(w, `{"kind":"PersistentVolumeClaimList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[`+
					`{"metadata":{"namespace":"n","name":"data"},"spec":{"volumeName":"pv"}}]}`)
			})
			worker := w.configure("w1", c.Kubeconfig("t"), Settings{Spec: v1alpha1.WorkerClusterSpec{Capacity: mode}}, known{})
			counts := mode == v1alpha1.CapacityNodes
			w.untilState(worker, Ready, v1alpha1.ReasonConnected)
			w.until("the rest is known", func() bool { return worker.View().Capacity.Known == counts })
			free := worker.Free(anyJob, placement.Reads{})
			if (free != nil) != counts || counts && free.Listing != nil || c.Requests("get persistentvolumeclaims")+c.Requests("watch persistentvolumes") > 0 {
				t.Errorf("nobody has claims: %+v", free)
			}
			c.Hang() // else they may be listed before the first answer
			if free = worker.Free(anyJob, placement.Reads{Claims: true}); free.Listing == nil || free.Volumes != nil || free.NodesUnknown == counts {
				t.Errorf("asked for the first time: %+v", free)
			}
			c.Heal()
			w.until("they're known", func() bool { return worker.Free(anyJob, placement.Reads{Claims: true}).Volumes != nil })
			if free = worker.Free(anyJob, placement.Reads{Claims: true}); free.Listing != nil || free.Volumes.Claims["n"]["data"].Spec.VolumeName != "pv" || free.Volumes.Drivers == nil {
				t.Errorf("known: %+v", free.Volumes)
			}
			if got := worker.View().Capacity; got.Unchecked != "" || got.Missing != "" {
				t.Errorf("%+v", got)
			}
			c.Forbid("storageclasses", true)
			w.server.Cut()
			w.until("they aren't known any more", func() bool {
				f := worker.Free(anyJob, placement.Reads{Claims: true})
				return f.Volumes == nil && f.Listing == nil
			})
			w.until("it's said", func() bool { return strings.Contains(worker.View().Capacity.Unchecked, "storageclasses") })
		})
	}
}

// TestAWorkerThatFailsToListVolumes, or forbids it, gets Jobs without them.
func TestAWorkerThatFailsToListVolumes(t *testing.T) {
	w := newWorld(t)
	c := w.server.Add("c", "uid", "t")
	c.Break("persistentvolumes", true)
	c.Forbid("csinodes", true)
	worker := w.register("w1", c.Kubeconfig("t"))
	w.until("the rest is known", func() bool { return worker.View().Capacity.Known })
	w.until("they're given up", func() bool { return worker.Free(anyJob, placement.Reads{Claims: true}).Listing == nil })
	if free := worker.Free(anyJob, placement.Reads{Claims: true}); free.Volumes != nil || len(free.Nodes) > 0 {
		t.Errorf("%+v", free)
	}
	c.Break("persistentvolumes", false)
	w.until("the rest of them is known", func() bool {
		v := worker.Free(anyJob, placement.Reads{Claims: true}).Volumes
		return v != nil && v.Nodes == nil && v.Drivers != nil
	})
}

// TestNamespacesAreReadWhereTheirLabelsCount: from the first Job on that selects by them, or with a
// Pod that does.
func TestNamespacesAreReadWhereTheirLabelsCount(t *testing.T) {
	for _, byPod := range []bool{false, true} {
		t.Run(fmt.Sprint("by a Pod ", byPod), func(t *testing.T) {
			w := newWorld(t)
			c := w.server.Add("c", "uid", "t")
			c.Put("namespaces", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"team": "red"}, Annotations: map[string]string{"large": "x"}}})
			worker := w.register("w1", c.Kubeconfig("t"))
			w.until("the rest is known", func() bool { return worker.View().Capacity.Known })
			reads := placement.Reads{Namespaces: true}
			if free := worker.Free(anyJob, placement.Reads{}); free.Listing != nil || free.Namespaces != nil || c.Requests("watch namespaces") > 0 {
				t.Errorf("nobody selects by labels: %+v", free)
			}
			c.Hang() // else they may be listed before the first answer
			if byPod {
				reads = placement.Reads{}
				c.Put("pods", selectingPod())
				w.until("the Pod is known", func() bool { return worker.Free(anyJob, reads).Listing != nil })
			} else if free := worker.Free(anyJob, reads); free.Listing == nil {
				t.Errorf("asked for the first time: %+v", free)
			}
			c.Heal()
			w.until("they're known", func() bool { return worker.Free(anyJob, reads).Namespaces != nil })
			if n := worker.Free(anyJob, reads).Namespaces["n"]; n.Labels["team"] != "red" || n.Annotations != nil {
				t.Errorf("%+v", n)
			}
			// but not what probes read
			refuse := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }
			c.Answer("watch namespaces", refuse)
			c.Answer("get namespaces", refuse)
			w.server.Cut()
			w.until("it's said", func() bool { return strings.Contains(worker.View().Capacity.Unchecked, "namespaces") })
			if free := worker.Free(anyJob, reads); free.Listing != nil || free.Namespaces != nil {
				t.Errorf("they aren't known any more: %+v", free)
			}
		})
	}
}

// selectingPod keeps Pods of namespaces with a label away.
func selectingPod() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p", UID: "p"}, Spec: corev1.PodSpec{
		NodeName: "a",
		Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: "zone", NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "red"}},
			}},
		}},
	}}
}
