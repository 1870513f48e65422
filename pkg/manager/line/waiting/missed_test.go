package waiting_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/manager/line/waiting"
	"github.com/jobferry/jobferry/pkg/placement"
)

// What a Job lacks comes while its worker is reserved for another Job: it's tried when the
// reservation has gone, though that says of room alone.
func TestWhatCameUnderAReservationIsRemembered(t *testing.T) {
	for _, c := range []struct {
		name string
		need waiting.Need
		came placement.ChangeKinds
	}{
		{"quota", waiting.Need{Lacks: waiting.Other, HelpedBy: placement.AdmissionChange}, placement.AdmissionChange},
		{"Pods to be near", waiting.Need{Lacks: waiting.Other, HelpedBy: placement.NodesChange | placement.PodsChange}, placement.PodsChange},
		{"volumes", waiting.Need{Lacks: waiting.Other, HelpedBy: placement.VolumesChange}, placement.VolumesChange},
		{"devices that stand for a resource", waiting.Need{Pods: 1, HelpedBy: placement.RoomChange | placement.DevicesChange}, placement.DevicesChange},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFullFleet()
			var line waiting.Line
			wide, later := newSimJob(1, 0, 0, 3, "8"), newSimJob(2, 0, time.Second, 1, "8")
			wide.Needs, later.Needs = needs(waiting.Need{Pods: 3, HelpedBy: placement.RoomChange}, "w"), needs(c.need, "w")
			f.jobs = map[types.NamespacedName]*simJob{wide.Key: wide, later.Key: later}
			line.Add(&wide.Job)
			line.Add(&later.Job)
			line.Walk(f.now, nil, f)
			if line.Reservation(&wide.Job) == nil {
				t.Fatal("the wide Job has no reservation")
			}
			came := placement.Changes{}
			came.Add("w", placement.Change{Kinds: c.came})
			line.Walk(f.now, came, f)
			if f.tried > 0 {
				t.Fatalf("%d Jobs are tried under the reservation", f.tried)
			}
			line.Remove(wide.Key)
			line.Release(&wide.Job)
			line.Walk(f.now, freed("w"), f)
			if f.tried != 1 {
				t.Errorf("%d Jobs are tried once the reservation has gone, want 1", f.tried)
			}
		})
	}
}

// A Job that missed nothing isn't tried because a reservation goes.
func TestNothingIsMissedThatHelpsNot(t *testing.T) {
	job := newSimJob(1, 0, 0, 1, "8")
	job.Needs.Set("w", waiting.Need{Lacks: waiting.Other, HelpedBy: placement.AdmissionChange})
	came := placement.Changes{}
	for _, worker := range []string{"w", "unknown"} {
		came.Add(worker, placement.Change{Kinds: placement.AdmissionChange, Namespace: "other"})
		job.Miss(worker, came)
	}
	if helps := waiting.Helped(newFullFleet()); !helps.MayAsk(&job.Job) || helps.By(&job.Job, "w", freed("w")) || job.Needs.Len() != 1 {
		t.Errorf("needs %v", job.Needs)
	}
}
