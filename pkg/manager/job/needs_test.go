package job

import (
	"maps"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/manager/line/waiting"
	"github.com/jobferry/jobferry/pkg/placement"
	"github.com/jobferry/jobferry/pkg/placement/placementtest"
)

// ownHost keeps a Job's Pods away from each other, and evenly has as many of them on each host.
func ownHost(job *batchv1.Job) {
	job.Spec.Template.Labels = map[string]string{"app": job.Name}
	job.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: metav1.SetAsLabelSelector(job.Spec.Template.Labels), TopologyKey: corev1.LabelHostname,
		}},
	}}
}

func evenly(job *batchv1.Job) {
	job.Spec.Template.Labels = map[string]string{"app": job.Name}
	job.Spec.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule,
		LabelSelector: metav1.SetAsLabelSelector(job.Spec.Template.Labels),
	}}
}

// Jobs whose Pods keep apart lack room as others do: one node takes no more of them, and the other
// one is full. Where one Pod goes on a node, that is known well enough to reserve it.
func TestPodsThatKeepApartLackRoom(t *testing.T) {
	for name, apart := range map[string]func(*batchv1.Job){"one for each host": ownHost, "evenly": evenly} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.worker("b").drains(true)
			ledger := w.worker("a").ledger
			for _, node := range ledger.Free(jobKey).Nodes() {
				ledger.DeleteNode(node.Object.Name)
			}
			node := func(name string) {
				ledger.SetNode(placementtest.NewNode(name).Label(corev1.LabelHostname, name).Has("cpu", "8", "pods", "110").Obj())
			}
			node("one")
			w.queues(aJob("full", pods(8), deadline(time.Hour)))
			node("two")
			w.queues(aJob("apart", pods(2), apart))
			w.wantPlaced(map[string]string{"full": "a", "apart": ""})
			wait := maps.Collect(w.line.Waits())[inTeam("apart")]
			need, _ := wait.Needs.Get("a")
			if r := w.line.Reservations()["a"]; need.Lacks != waiting.Room || need.Pods != 2 || (r == nil) != (name == "evenly") {
				w.fail("it needs %+v, and the reservation is %+v", need, r)
			}
		})
	}
}

// A Job goes once a worker can be read again, whatever has changed there.
func TestAWorkerThatCanBeReadAgain(t *testing.T) {
	w := newFullWorld(t)
	w.worker("a").unreadable = true
	w.queues(aJob("waits", pods(1)))
	for i := range 8 {
		w.worker("a").ledger.Release(inTeam("small-" + string(rune('1'+i))))
	}
	w.step(time.Minute)
	w.wantPlaced(map[string]string{"waits": ""})
	w.worker("a").unreadable = false
	w.triggers.CapacityFreed("a", placement.Change{Kinds: placement.DevicesChange})
	w.step(time.Second)
	w.wantPlaced(map[string]string{"waits": "a"})
}
