package shards

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/mirror/intervals"
	"github.com/jobferry/jobferry/pkg/util/objectnames"
)

// Placement is where a Job runs that may run on several workers.
type Placement struct {
	// Shards, in order of the workers' names; one at most in each.
	Shards []Shard
	// Settled are the counters of the mirrors that no shard has any more.
	Settled Counters
}

// Shard is the part of a Job in one worker.
type Shard struct {
	// Worker is the name of the WorkerCluster.
	Worker string
	// Amount is what the shard has of the Job's completions. Completed and failed ones stay in it.
	Amount
	// State is what else the hub keeps of it.
	State
}

// State is what the hub keeps of a shard beside its completions.
type State struct {
	// Parallelism is the shard's part of the Job's.
	Parallelism int32 `json:"parallelism"`
	// Stopping: the shard's mirror is stopped, brings its progress to the hub, and is deleted; then
	// the shard is removed, and what is left of it is unassigned.
	Stopping bool `json:"stopping,omitempty"`
	// Returning are indexes of the shard that its worker is asked to give back: they are left out
	// of the mirror's AnnotationIndexes. Those that the worker has started stay.
	Returning string `json:"returning,omitempty"`
	// Counters of the shard's mirror, as the hub Job's status includes them.
	Counters
}

// Counters are those of a mirror's status that can't be told from the hub Job's.
type Counters struct {
	// Succeeded is kept for Jobs without indexes only.
	Succeeded int32 `json:"succeeded,omitempty"`
	Failed    int32 `json:"failed,omitempty"`
}

func (c Counters) plus(o Counters) Counters {
	return Counters{sumUpTo(c.Succeeded, o.Succeeded), sumUpTo(c.Failed, o.Failed)}
}

// sumUpTo doesn't overflow: the counters may have been edited.
func sumUpTo(a, b int32) int32 { return int32(min(int64(a)+int64(b), math.MaxInt32)) }

// Amount is a part of a Job's completions: a set of indexes of an Indexed Job, or a number.
type Amount struct {
	Indexes intervals.Set
	Number  int
}

// Len is the number of completions.
func (a Amount) Len() int { return a.Indexes.Len() + a.Number }

// String is the form of AnnotationIndexes.
func (a Amount) String() string {
	if a.Number > 0 {
		return strconv.Itoa(a.Number)
	}
	return a.Indexes.String()
}

// ParseAmount reads the form of AnnotationIndexes, strictly.
func ParseAmount(text string, indexed bool) (a Amount, err error) {
	if indexed {
		a.Indexes, err = intervals.ParseStrict(text, intervals.NoLimit)
		return a, err
	}
	if text == "" {
		return a, nil
	}
	number, err := strconv.ParseUint(text, 10, 31)
	return Amount{Number: int(number)}, err
}

// Indexed reports whether the completions of a Job have indexes.
func Indexed(job *batchv1.Job) bool {
	return ptr.Deref(job.Spec.CompletionMode, batchv1.NonIndexedCompletion) == batchv1.IndexedCompletion
}

// stateText is the form of hubstate.ShardsState.
type stateText struct {
	Shards  map[string]State `json:"shards"`
	Settled Counters         `json:"settled"`
}

// IsPlaced reports whether a hub Job is placed as shards.
func IsPlaced(job *batchv1.Job) bool {
	return hubstate.Get(job, hubstate.Shards) != "" || hubstate.Get(job, hubstate.ShardsState) != ""
}

// Read returns the shards of a hub Job that is placed as such. The error is for the user's eyes:
// someone has edited what is kept. The parts have fallen already if the Job's parallelism has,
// so that no mirror starts Pods by the higher one.
func Read(job *batchv1.Job) (Placement, error) {
	var state stateText
	if err := json.Unmarshal([]byte(hubstate.Get(job, hubstate.ShardsState)), &state); err != nil {
		return Placement{}, fmt.Errorf("condition %s, %s: %w", hubstate.State, hubstate.ShardsState, err)
	}
	p := Placement{Settled: state.Settled}
	if p.Settled.Succeeded < 0 || p.Settled.Failed < 0 {
		return Placement{}, fmt.Errorf("condition %s, %s: a settled counter is negative", hubstate.State, hubstate.ShardsState)
	}
	if err := p.readShards(job, state.Shards); err != nil {
		return Placement{}, fmt.Errorf("condition %s: %w", hubstate.Placed, err)
	}
	return p.within(job), nil
}

// within makes the parts fall in proportion when they add up to more than the Job's parallelism,
// which its user has lowered.
func (p Placement) within(job *batchv1.Job) Placement {
	limit, sum := int(ptr.Deref(job.Spec.Parallelism, 1)), p.Parallelism()
	if sum <= limit {
		return p
	}
	p.Shards = slices.Clone(p.Shards)
	before, after := 0, 0
	for i := range p.Shards {
		before += int(p.Shards[i].Parallelism)
		// integers could overflow
		p.Shards[i].Parallelism = int32(int(float64(before)*float64(limit)/float64(sum)) - after)
		after += int(p.Shards[i].Parallelism)
	}
	return p
}

// maxShards bounds the shards of a Job.
const maxShards = 1000

func tooMany(job *batchv1.Job) bool {
	return strings.Count(hubstate.Get(job, hubstate.Shards), ";") >= maxShards
}

func (p *Placement) readShards(job *batchv1.Job, states map[string]State) error {
	if tooMany(job) {
		return fmt.Errorf("it names more than %d workers", maxShards)
	}
	var all []intervals.Set
	for worker, amount := range amounts(job) {
		shard := Shard{Worker: worker, State: states[worker]}
		var err error
		switch shard.Amount, err = ParseAmount(amount, Indexed(job)); {
		case err != nil:
			return fmt.Errorf("worker %.64q: %w", worker, err)
		case !objectnames.IsDNSSubdomain(worker):
			return fmt.Errorf("%.64q isn't the name of a worker", worker)
		case shard.Parallelism < 0 || shard.Succeeded < 0 || shard.Failed < 0:
			return fmt.Errorf("worker %s: a counter in %s is negative", worker, hubstate.ShardsState)
		}
		all = append(all, shard.Indexes)
		p.Shards = append(p.Shards, shard)
	}
	if index, is := intervals.Shared(all...); is {
		return fmt.Errorf("index %d is in two shards", index)
	}
	slices.SortFunc(p.Shards, func(a, b Shard) int { return cmp.Compare(a.Worker, b.Worker) })
	for i := 1; i < len(p.Shards); i++ {
		if p.Shards[i].Worker == p.Shards[i-1].Worker {
			return fmt.Errorf("worker %s has two shards", p.Shards[i].Worker)
		}
	}
	return nil
}

// amounts iterates over the workers that hubstate.Shards names, and the texts of their amounts.
func amounts(job *batchv1.Job) func(func(worker, amount string) bool) {
	return func(yield func(worker, amount string) bool) {
		text := hubstate.Get(job, hubstate.Shards)
		if text == "" {
			return
		}
		for part := range strings.SplitSeq(text, ";") {
			worker, amount, _ := strings.Cut(part, "=")
			if !yield(worker, amount) {
				return
			}
		}
	}
}

// Kept is what Read reads.
func (p Placement) Kept() hubstate.Changes {
	state := stateText{Shards: map[string]State{}, Settled: p.Settled}
	parts := make([]string, 0, len(p.Shards))
	for _, s := range p.Shards {
		parts = append(parts, s.Worker+"="+s.String())
		state.Shards[s.Worker] = s.State
	}
	text, err := json.Marshal(state)
	if err != nil {
		panic(err) // can't be: names and numbers
	}
	return hubstate.Changes{hubstate.Shards: strings.Join(parts, ";"), hubstate.ShardsState: string(text)}
}

// Changes returns what a hub Job doesn't have as it is to be.
func (p Placement) Changes(job *batchv1.Job) hubstate.Changes {
	changes := p.Kept()
	maps.DeleteFunc(changes, func(key hubstate.Key, value string) bool { return hubstate.Get(job, key) == value })
	return changes
}

// In returns the shard in a worker.
func (p Placement) In(worker string) (Shard, bool) {
	for _, s := range p.Shards {
		if s.Worker == worker {
			return s, true
		}
	}
	return Shard{}, false
}

// Without returns the placement without the shard in a worker, whose counters stay in the Job's: it
// is lost, or its mirror is gone for good. What the shard still had to do is unassigned then.
func (p Placement) Without(worker string) Placement {
	next := Placement{Settled: p.Settled}
	for _, s := range p.Shards {
		if s.Worker == worker {
			next.Settled = next.Settled.plus(s.Counters)
		} else {
			next.Shards = append(next.Shards, s)
		}
	}
	return next
}

// Parallelism is that of all shards together.
func (p Placement) Parallelism() int {
	n := 0
	for _, s := range p.Shards {
		n += int(s.Parallelism)
	}
	return n
}

// Workers are those of the shards.
func (p Placement) Workers() []string {
	workers := make([]string, 0, len(p.Shards))
	for _, s := range p.Shards {
		workers = append(workers, s.Worker)
	}
	return workers
}

// WorkersOf returns the workers that a hub Job is placed on, in order of names: none, one, or those
// of its shards.
func WorkersOf(job *batchv1.Job) []string {
	if worker := hubstate.Get(job, hubstate.Cluster); worker != "" {
		return []string{worker}
	}
	if tooMany(job) {
		return nil // as Read, which fails
	}
	var workers []string
	for worker := range amounts(job) {
		if worker != "" {
			workers = append(workers, worker)
		}
	}
	slices.Sort(workers)
	return slices.Compact(workers)
}

// IsOn reports whether a hub Job is placed on a worker.
func IsOn(job *batchv1.Job, worker string) bool { return slices.Contains(WorkersOf(job), worker) }
