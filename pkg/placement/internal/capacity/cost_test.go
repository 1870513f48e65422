package capacity

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	. "github.com/jobferry/jobferry/pkg/placement/internal/capacity/capacitytest"
	"github.com/jobferry/jobferry/pkg/util/costtest"
)

// manyNodes have one CPU each.
func (s *story) manyNodes(count int) {
	for i := range count {
		s.SetNode(NewNode(fmt.Sprintf("n%05d", i)).Has("cpu", "1").Obj())
	}
}

// holds is how many slots are held for a Job.
func (s *story) holds(j *JobBuilder) int64 { return s.jobs[j.Key()].reservation.held.sum() }

// A tenant lowers the parallelism of a Job that has a Pod on each of many nodes.
func TestAReservationOnManyNodesShrinks(t *testing.T) {
	s := newStory(t)
	s.manyNodes(2000)
	j := NewJob("j").Requests("cpu", "1")
	s.Reserve(j.Key(), shape(j), 2000)
	if cost := costtest.Of(func() { s.Reserve(j.Key(), shape(j), 1) }); cost > 1<<20 {
		t.Errorf("allocates %d KiB", cost>>10)
	}
	if n := s.holds(j); n != 1 {
		t.Errorf("holds %d slots", n)
	}
}

// A worker has very many Pods that wait, each of another shape: each finds its queue at once, and a
// change there copies nothing.
func TestManyShapesWait(t *testing.T) {
	s := newStory(t)
	const pods = 5000
	for i := range pods {
		s.SetPod(NewJob("j").Requests("cpu", fmt.Sprint(i+1)).Pod(fmt.Sprint(i)))
	}
	if len(s.queues.byShape) != pods {
		t.Fatalf("%d queues", len(s.queues.byShape))
	}
	if cost := costtest.Of(func() { s.SetNode(NewNode("n").Has("cpu", "0").Obj()) }); cost > pods*4 {
		t.Errorf("allocates %d bytes for a node", cost)
	}
	for i := range pods {
		s.DeletePod(types.UID(fmt.Sprint(i)))
	}
	if len(s.queues.byShape)+s.queues.order.Len() > 0 {
		t.Errorf("remembers %v", s.queues)
	}
}
