package line

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/group"
	"github.com/jobferry/jobferry/pkg/manager/line/waiting"
	"github.com/jobferry/jobferry/pkg/manager/workerpanic"
	"github.com/jobferry/jobferry/pkg/placement"
)

// WorkerReader is what is read of a worker to judge whether a Job fits there.
type WorkerReader interface {
	Name() string
	View() clusters.View
	// Free is what its scheduler knows, as far as it concerns one Job, whose own reservation and Pods
	// aren't in its way, and what that Job reads besides; nil: not checked.
	Free(job types.NamespacedName, reads placement.Reads) *placement.Snapshot
	// Room is what its autoscaler may still add, if one Job's Pods that wait there don't count; nil:
	// nothing.
	Room(job types.NamespacedName) *placement.Room
}

// Worker is a worker whose capacity the line reserves.
type Worker interface {
	WorkerReader
	Ledger() *placement.Ledger
}

// Workers is what the line uses of the registry of workers.
type Workers interface {
	Worker(name string) (Worker, bool)
	Workers() []Worker
	// Drops are the paths of the fields of a Job that a worker is known to drop.
	Drops(worker WorkerReader) map[string]bool
	// StockoutsChanged is called when a worker is out for other shapes of Pods than before.
	StockoutsChanged(worker string)
}

// Jobs is what the line uses of the controller of hub Jobs.
type Jobs interface {
	// Cached reads a hub Job from the cache; nil: there is none. It must not be modified.
	Cached(ctx context.Context, key types.NamespacedName) *batchv1.Job
	// PassedOver has, by worker, the reason why a Job can't be there for now. It's the caller's.
	PassedOver(key types.NamespacedName) map[string]string
	// Admission is what Kueue decides about a Job.
	Admission(ctx context.Context, job *batchv1.Job) dispatch.Admission
	// PlacedOn are the unfinished Jobs on a worker, and AwaitingPods those of them whose mirror waits
	// for its first Pod there.
	PlacedOn(worker string) []types.NamespacedName
	AwaitingPods(worker string) []types.NamespacedName
	// AwaitingCapacity are the Jobs to be looked at when a worker has more free capacity, also those
	// that are placed already, and wait in no line.
	AwaitingCapacity() []types.NamespacedName
	CountAwaitingCapacity() int
	// Run is since when a Job runs, and the deadline that it has; zero: not known.
	Run(key types.NamespacedName) (started time.Time, deadline time.Duration)
	// Reserver remembers where capacity is reserved for a Job.
	Reserver(key types.NamespacedName) Reserver
	// ReturnsNow has a Job looked at without a delay when it's reconciled: a worker that it prefers to
	// its own may have room.
	ReturnsNow(key types.NamespacedName)
	// GroupPlaces are the workers where Jobs of a group are: the first is where they belong.
	GroupPlaces(id group.ID) []group.Place
	// MayPlace reports whether Jobs may be placed at all.
	MayPlace() bool
	// Enqueue has Jobs reconciled.
	Enqueue(keys ...types.NamespacedName)
	// EnqueueRelated has Jobs reconciled for a change of something else: very many come after others.
	EnqueueRelated(keys ...types.NamespacedName)
}

// Reserver remembers the workers in which capacity is reserved for one Job.
type Reserver interface {
	Key() types.NamespacedName
	ReservedIn() []string
	SetReservedIn(workers []string)
}

// freeIn is what a worker's scheduler knows, as Free has it. What can't be read takes no Job.
func freeIn(w WorkerReader, held types.NamespacedName, reads placement.Reads) (free *placement.Snapshot) {
	if !workerpanic.Contain(w.Name(), func() { free = w.Free(held, reads) }) {
		free = &placement.Snapshot{CantJudge: true}
	}
	return free
}

// nodesOf are a worker's, with what is free now, as Free has it; none if that can't be read.
func nodesOf(w Worker, held types.NamespacedName) (nodes []*placement.Node) {
	workerpanic.Contain(w.Name(), func() { nodes = w.Ledger().Free(held).Nodes() })
	return nodes
}

// added are the nodes that a worker's autoscaler may add for Pods of a Shape.
func added(w Worker, shape *placement.Shape) (nodes []*placement.Node) {
	workerpanic.Contain(w.Name(), func() {
		if room := w.Room(types.NamespacedName{}); room != nil {
			nodes = room.Nodes(shape, waiting.Unlimited)
		}
	})
	return nodes
}
