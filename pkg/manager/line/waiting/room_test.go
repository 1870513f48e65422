package waiting

import (
	"fmt"
	"iter"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/placement"
)

// endings is a worker with one node of 8 CPUs, on which eight Pods end one after the other.
type endings struct{ Workers }

func (endings) Nodes(string) ([]*placement.Node, bool) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	return []*placement.Node{{Object: node, Idle: placement.Resources{MilliCPU: 8000, Pods: 110}, Free: placement.Resources{Pods: 102}}}, true
}

func (endings) Added(string, *placement.Shape) []*placement.Node { return nil }

func (endings) Ends(string) (ends []End) {
	for i := range 8 {
		at := Expected{At: time.Unix(int64(i+1), 0), Basis: ByDeadline}
		job := types.NamespacedName{Namespace: "team", Name: fmt.Sprint("runs-", i)}
		ends = append(ends, End{Job: job, Expected: at, Unit: placement.Resources{MilliCPU: 1000, Pods: 1}, Pods: onNode("n")})
	}
	return ends
}

func (endings) EndOf(_ string, job *Job) (End, bool) {
	return End{Job: job.Key, Expected: Expected{At: time.Unix(100, 0), Basis: ByDeadline}, Pods: onNode("n")}, true
}

func onNode(name string) iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) { yield(name, 1) }
}

// A namespace that has had its looks is told less of a worker than there is, and no other namespace
// is for that.
func TestASweepThatWasCutShortIsNotKept(t *testing.T) {
	job := func(namespace string) *Job {
		requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		return &Job{Key: types.NamespacedName{Namespace: namespace, Name: "job"}, Pods: 8, Shape: placement.ShapeOf(&corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: requests}}}},
		})}
	}
	all := roomsOf(nil, endings{})
	fits := func(namespace string) string {
		all.looks.areOver(namespace)
		f := all.fit(all.room("w"), job(namespace), time.Unix(0, 0))
		return fmt.Sprint(f.at.Unix(), f.basis == ByDeadline, f.lacks)
	}
	all.looks.areOver("mallory")
	all.looks.add(maxLooks - 3)
	if got, cut := fits("mallory"), fmt.Sprint(time.Time{}.Unix(), false, 5); got != cut {
		t.Errorf("mallory's Job: %s, want %s", got, cut)
	}
	for _, namespace := range []string{"team", "other"} {
		if got, whole := fits(namespace), fmt.Sprint(8, true, 0); got != whole {
			t.Errorf("the Job of %s: %s, want %s", namespace, got, whole)
		}
	}
	if len(all.room("w").fits) != 1 {
		t.Error("what was computed isn't kept")
	}
}

// To find out when very many Jobs end takes as much of what a namespace has as looks at nodes do.
func TestEndsAreLooks(t *testing.T) {
	all := roomsOf(nil, endings{})
	all.looks.areOver("team")
	for range 3 {
		if ends := all.endsIn("w"); len(ends) != 8 || all.looks.gathered["team"] != 8*looksPerEnd {
			t.Errorf("%d ends are %d looks", len(ends), all.looks.gathered["team"])
		}
	}
}

// A Job comes back to a worker in which it had room: it ends there once, and later.
func TestAJobThatIsPlacedAgainEndsOnce(t *testing.T) {
	all := roomsOf(nil, endings{})
	again := &Job{Key: all.endsIn("w")[2].Job}
	all.placed(again, "w")
	ends := all.endsIn("w")
	if len(ends) != 8 || ends[7].Job != again.Key || ends[7].At != time.Unix(100, 0) {
		t.Errorf("%d Jobs end, the last is %v at %v", len(ends), ends[7].Job, ends[7].At)
	}
}

// A tenant's Jobs have ever other Shapes while a reservation holds: it remembers some of them.
func TestAReservationRemembersFewShapes(t *testing.T) {
	of := func(milliCPU int64) *placement.Shape {
		requests := corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(milliCPU, resource.DecimalSI)}
		return placement.ShapeOf(&corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: requests}}}},
		})
	}
	all := roomsOf(nil, endings{})
	r := &Reservation{Job: &Job{Shape: of(1)}, Worker: "w", room: all.room("w"), losses: map[string]int64{}}
	for i := range int64(3 * maxLosses) {
		if n := r.loss(of(1 + i)); n != 1+i {
			t.Fatalf("a Pod of %d takes the room of %d", 1+i, n)
		}
	}
	if len(r.losses) > maxLosses {
		t.Errorf("%d Shapes are remembered", len(r.losses))
	}
}
