package capacity_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/placement"
	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
	. "github.com/jobferry/jobferry/pkg/placement/internal/capacity/capacitytest"
	"github.com/jobferry/jobferry/pkg/placement/internal/change"
	"github.com/jobferry/jobferry/pkg/placement/internal/scheduling"
)

// nobody is the key of no Job.
var nobody types.NamespacedName

func shape(j *JobBuilder) *capacity.Shape { return capacity.ShapeOf(&j.Obj().Spec.Template) }

func ledgerOf(nodes ...*NodeBuilder) *capacity.Ledger {
	l := capacity.New(func(change.Change) {})
	for _, n := range nodes {
		l.SetNode(n.Obj())
	}
	return l
}

// fitsIn reports whether placement would choose a worker with this Capacity.
func fitsIn(c *capacity.Capacity, j *JobBuilder) bool {
	worker := placement.Cluster{Name: "w", Ready: true, Capacity: snapshot(c)}
	return placement.Place(placement.Request{Job: j.Obj()}, []placement.Cluster{worker}).Cluster != ""
}

func snapshot(c *capacity.Capacity) *scheduling.Snapshot {
	return scheduling.NewPods(func(change.Change) {}).Snapshot(c, nobody)
}

func TestPlacementSeesReservations(t *testing.T) {
	l := ledgerOf(NewNode("a"))
	place := func(j *JobBuilder) bool {
		fits := fitsIn(l.Free(nobody), j)
		if fits {
			l.Reserve(j.Key(), shape(j), placement.PodsWanted(j.Obj()))
		}
		return fits
	}
	for i := range 4 {
		if !place(NewJob(fmt.Sprint("j", i)).Requests("cpu", "1")) {
			t.Fatalf("Job %d doesn't fit", i)
		}
	}
	if place(NewJob("j4").Requests("cpu", "1")) {
		t.Error("the fifth Job fits")
	}
	l.Release(NewJob("j2").Key())
	if !place(NewJob("j4").Requests("cpu", "1")) {
		t.Error("the fifth Job doesn't fit though the third is gone")
	}
}

// TestAReservationIsFreeForItsJob: a Job that holds capacity still fits, whoever waits for the
// rest.
func TestAReservationIsFreeForItsJob(t *testing.T) {
	l := ledgerOf(NewNode("a"))
	holder := NewJob("holder").Pods(3).Requests("cpu", "1")
	l.Reserve(holder.Key(), shape(holder), 3)
	thirdParty := NewJob("other").Requests("cpu", "2").Pod("waits")
	l.SetPod(thirdParty)
	if !fitsIn(l.Free(holder.Key()), holder) {
		t.Error("a Job that holds capacity doesn't fit beside a Pod that waits")
	}
	if other := NewJob("third").Pods(2).Requests("cpu", "1"); fitsIn(l.Free(other.Key()), other) {
		t.Error("another Job fits in what is held")
	}
	if wider := NewJob("holder").Pods(5).Requests("cpu", "1"); fitsIn(l.Free(holder.Key()), wider) != fitsIn(capacity.NewCapacity(nodesOf(l, 4)), wider) {
		t.Error("the Job gets more or less than its own")
	}
	l.SetPod(Bind(holder.Pod("bound"), "a"))
	if again := NewJob("holder").Pods(2).Requests("cpu", "1"); !fitsIn(l.Free(holder.Key()), again) {
		t.Error("the rest of the reservation isn't free for the Job")
	}
}

// nodesOf are a ledger's nodes with other free CPUs.
func nodesOf(l *capacity.Ledger, cpus int64) []*capacity.Node {
	var nodes []*capacity.Node
	for _, n := range l.Free(nobody).Nodes() {
		changed := *n
		changed.Free.MilliCPU = cpus * 1000
		nodes = append(nodes, &changed)
	}
	return nodes
}

// TestChecksWithoutAChangeNotifyNobody: what a reconcile asks and reserves again notifies nobody.
func TestChecksWithoutAChangeNotifyNobody(t *testing.T) {
	calls := 0
	l := capacity.New(func(change.Change) { calls++ })
	l.SetNode(NewNode("a").Obj())
	j := NewJob("j").Pods(3).Requests("cpu", "2")
	l.Reserve(j.Key(), shape(j), 3) // one more than there is
	l.SetPod(NewJob("other").Requests("cpu", "2").Pod("waits"))
	before := l.Free(nobody)
	calls = 0
	for range 5 {
		fitsIn(l.Free(j.Key()), j)
		l.Reserve(j.Key(), shape(j), 3)
		l.Release(nobody)
	}
	if calls != 0 || l.Free(nobody) != before {
		t.Errorf("notified %d times; changed: %t", calls, l.Free(nobody) != before)
	}
	l.Release(j.Key())
	if calls != 1 {
		t.Errorf("notified %d times of a release, want once", calls)
	}
}

// TestTheRoomOfAJobThatRuns: what a Job's Pods take is free for the Job, and for no other; but for
// those that are being deleted.
func TestTheRoomOfAJobThatRuns(t *testing.T) {
	l := ledgerOf(NewNode("a"))
	job := NewJob("job").Pods(4).Requests("cpu", "1")
	l.Reserve(job.Key(), shape(job), 3)
	for _, name := range []string{"one", "two"} {
		l.SetPod(Bind(job.Pod(name), "a"))
	}
	if !fitsIn(l.Free(job.Key()), job) {
		t.Error("the Job doesn't fit where it runs")
	}
	if other := NewJob("other").Pods(2).Requests("cpu", "1"); fitsIn(l.Free(other.Key()), other) {
		t.Error("another Job fits in what it takes")
	}
	leaving := Bind(job.Pod("two"), "a").DeepCopy()
	leaving.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	l.SetPod(leaving)
	if fitsIn(l.Free(job.Key()), job) {
		t.Error("the Job fits beside its Pod that is being deleted")
	}
}
