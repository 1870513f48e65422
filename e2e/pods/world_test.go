package pods_test

import (
	"maps"
	"net"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager"
)

// world is a hub whose manager shows Pods, as one test sees it.
type world struct {
	*ferrytest.Ferry
	t testing.TB
}

// shown labels the test's namespace.
func shown(t testing.TB) *world {
	t.Helper()
	f := ferrytest.For(t)
	f.Kubectl(f.Hub, "", "label", "namespace", f.NS, v1alpha1.LabelPods+"="+v1alpha1.PodsEnabled)
	return &world{f, t}
}

// enabled turns Pods on, at a port that is free.
func enabled(t testing.TB) (func(*manager.Options), int32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := int32(l.Addr().(*net.TCPAddr).Port)
	return func(o *manager.Options) {
		o.Pods = manager.PodsOptions{Enabled: true, Address: "127.0.0.1", Port: port}
	}, port
}

// runManager runs a manager that shows Pods, and returns its port.
func (w *world) runManager() (*ferrytest.Manager, int32) {
	w.t.Helper()
	edit, port := enabled(w.t)
	return w.RunManager(edit), port
}

// podUntil waits until a condition holds for a Pod of the test's namespace in a cluster.
func (w *world) podUntil(in *rig.Cluster, name string, condition func(*corev1.Pod) bool) *corev1.Pod {
	w.t.Helper()
	return w.Until(rig.Object(in.Client().CoreV1().RESTClient(), "pods", w.NS, name), func(o runtime.Object) bool {
		pod, is := o.(*corev1.Pod)
		return is && condition(pod)
	}).(*corev1.Pod)
}

// podGone waits until there is no such Pod.
func (w *world) podGone(in *rig.Cluster, name string) {
	w.t.Helper()
	w.Until(rig.Object(in.Client().CoreV1().RESTClient(), "pods", w.NS, name), rig.Gone)
}

// pods are those of a Job in a cluster, by name.
func (w *world) pods(in *rig.Cluster, job string) map[string]*corev1.Pod {
	w.t.Helper()
	list, err := in.Client().CoreV1().Pods(w.NS).List(w.Context(), metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=" + job})
	if err != nil {
		w.t.Fatal(err)
	}
	all := map[string]*corev1.Pod{}
	for i := range list.Items {
		all[list.Items[i].Name] = &list.Items[i]
	}
	return all
}

// shownAs waits until the hub shows the Pods that a Job has in a worker, and each as a condition
// says.
func (w *world) shownAs(worker, job string, condition func(*corev1.Pod) bool) map[string]*corev1.Pod {
	w.t.Helper()
	there := w.pods(w.Cluster(worker), job)
	for name, pod := range there {
		w.podUntil(w.Hub, name, func(s *corev1.Pod) bool {
			return s.Annotations[v1alpha1.AnnotationPodUID] == string(pod.UID) && s.DeletionTimestamp == nil && condition(s)
		})
	}
	if here := w.pods(w.Hub, job); !slices.Equal(slices.Sorted(maps.Keys(here)), slices.Sorted(maps.Keys(there))) {
		w.t.Errorf("the hub shows %v, the worker has %v", slices.Sorted(maps.Keys(here)), slices.Sorted(maps.Keys(there)))
	}
	return there
}

// same fails the test unless a worker has exactly these Pods, which nobody has deleted.
func (w *world) same(worker, job string, before map[string]*corev1.Pod) {
	w.t.Helper()
	uids := func(of map[string]*corev1.Pod) (uids []types.UID) {
		for _, pod := range of {
			if pod.DeletionTimestamp == nil {
				uids = append(uids, pod.UID)
			}
		}
		slices.Sort(uids)
		return uids
	}
	if now := w.pods(w.Cluster(worker), job); !slices.Equal(uids(now), uids(before)) {
		w.t.Errorf("worker %s has other Pods than before", worker)
	}
}

func running(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning && isReady(pod) }

func succeeded(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodSucceeded }

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
