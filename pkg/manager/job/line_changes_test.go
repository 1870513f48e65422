package job

import (
	"testing"
	"time"

	"github.com/jobferry/jobferry/pkg/placement"
)

// A Job that lacks something is judged when that may have come, for Jobs of its namespace, and not
// otherwise.
func TestOnlyWhatHelpsIsJudged(t *testing.T) {
	for _, c := range []struct {
		name   string
		jobs   crowd
		lacks  func(*fakeWorker)
		change placement.Change
		judged bool
	}{
		{"room, and no quota", ofQuota, noQuota, placement.Change{Kinds: placement.RoomChange}, false},
		{"Pods, and no quota", ofQuota, noQuota, placement.Change{Kinds: placement.PodsChange}, false},
		{"devices, and no quota", ofQuota, noQuota, placement.Change{Kinds: placement.DevicesChange}, false},
		{"quota", ofQuota, noQuota, placement.Change{Kinds: placement.AdmissionChange, Namespace: jobKey.Namespace}, true},
		{"quota of another namespace", ofQuota, noQuota, placement.Change{Kinds: placement.AdmissionChange, Namespace: "other"}, false},
		{"a class of the worker", ofQuota, noQuota, placement.Change{Kinds: placement.AdmissionChange}, true},
		{"nodes, and no quota", ofQuota, noQuota, placement.Change{Kinds: placement.NodesChange}, true},
		{"room, and no devices", ofDevices, noDevices, placement.Change{Kinds: placement.RoomChange}, false},
		{"devices", ofDevices, noDevices, placement.Change{Kinds: placement.DevicesChange}, true},
		{"room, and no extended resource", ofExtended, noMore, placement.Change{Kinds: placement.RoomChange}, false},
		{"nodes, perhaps with the extended resource", ofExtended, noMore, placement.Change{Kinds: placement.NodesChange}, true},
		{"devices that stand for the extended resource", ofExtended, noMore, placement.Change{Kinds: placement.DevicesChange}, true},
		{"room, and no Pods to be near", nearOthers, noMore, placement.Change{Kinds: placement.RoomChange}, false},
		{"Pods to be near", nearOthers, noMore, placement.Change{Kinds: placement.PodsChange}, true},
		{"volumes, and no room", ofSevenShapes, noMore, placement.Change{Kinds: placement.VolumesChange}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newFullWorld(t)
			c.lacks(w.worker("a"))
			w.queues(c.jobs(1))
			w.worker("a").ledger.Release(inTeam("small-1"))
			w.step(time.Minute)
			before := w.asked()
			w.triggers.CapacityFreed("a", c.change)
			w.clock.Step(time.Second)
			if judged := w.asked()["job-00001"] != before["job-00001"]; judged != c.judged {
				w.fail("it is judged: %t", judged)
			}
		})
	}
}

// A Job goes when its namespace has quota again, though no room was freed.
func TestQuotaThatComesHelps(t *testing.T) {
	w := newFullWorld(t)
	w.ends("small-1", "small-2", "small-3", "small-4")
	noQuota(w.worker("a"))
	w.queues(ofQuota(1))
	w.step(time.Minute)
	w.wantPlaced(map[string]string{"job-00001": ""})
	w.worker("a").quotas = nil
	w.triggers.CapacityFreed("a", placement.Change{Kinds: placement.AdmissionChange, Namespace: jobKey.Namespace})
	w.step(time.Second)
	w.wantPlaced(map[string]string{"job-00001": "a"})
}
