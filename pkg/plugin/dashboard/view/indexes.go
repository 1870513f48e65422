package view

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/manager/usage"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/intervals"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/plugin/show"
)

// IndexState is what has become of an index.
type IndexState uint8

// The states of an index.
const (
	IndexWaiting IndexState = iota
	IndexRunning
	IndexCompleted
	IndexFailed
	indexStates
)

// String is the state's name, which is also its CSS class.
func (s IndexState) String() string {
	return [indexStates]string{"waiting", "running", "completed", "failed"}[s]
}

// MaxIndexes is the largest number of indexes that are drawn.
const MaxIndexes = 1_000_000

// IndexMap is the state of each index of an Indexed Job.
type IndexMap struct {
	Total int `json:"total"`
	// Workers are the names that runs refer to.
	Workers []string `json:"workers"`
	// Runs have three numbers each: how many indexes, their state, their worker; -1: none is known.
	Runs [][3]int `json:"runs"`
	// Counts of the indexes by state.
	Counts [indexStates]int `json:"counts"`
	// PerWorker counts the same for each worker; the last row, without a name, is of no known worker.
	PerWorker []WorkerIndexes `json:"-"`
	// Version is another one when a run is.
	Version string `json:"-"`
}

// WorkerIndexes counts the indexes of one worker by state.
type WorkerIndexes struct {
	Name   string
	Counts [indexStates]int
}

// Legend lists the states with their counts.
func (m *IndexMap) Legend() (legend []Choice) {
	for s := range indexStates {
		legend = append(legend, Choice{Value: s.String(), Count: m.Counts[s]})
	}
	return legend
}

// NewIndexMap returns nil for a Job without indexes, or with too many.
func NewIndexMap(job *batchv1.Job, pods []corev1.Pod) *IndexMap {
	total := int(ptr.Deref(job.Spec.Completions, 0))
	if !shards.Indexed(job) || total <= 0 || total > MaxIndexes {
		return nil
	}
	b := indexBuilder{states: make([]IndexState, total), workers: slices.Repeat([]int16{-1}, total)}
	b.place(job)
	b.addPods(pods)
	b.mark(job.Status.CompletedIndexes, IndexCompleted)
	b.mark(ptr.Deref(job.Status.FailedIndexes, ""), IndexFailed)
	return b.build()
}

type indexBuilder struct {
	states  []IndexState
	workers []int16
	names   []string
}

// place sets the workers of indexes by the placement.
func (b *indexBuilder) place(job *batchv1.Job) {
	if workers := shards.WorkersOf(job); !shards.IsPlaced(job) {
		if len(workers) == 1 {
			b.workers = slices.Repeat([]int16{b.number(workers[0])}, len(b.workers))
			b.placeBefore(job)
		}
		return
	}
	placement, err := shards.Read(job)
	if err != nil {
		return // the Job's events tell
	}
	for _, shard := range placement.Shards {
		worker := b.number(shard.Worker)
		for _, i := range shard.Indexes.Below(len(b.states)).First(len(b.states)) {
			b.workers[i] = worker
		}
	}
}

// placeBefore sets the worker of the indexes that had ended when a Job last moved as a whole, where
// it is known.
func (b *indexBuilder) placeBefore(job *batchv1.Job) {
	from := hubstate.Get(job, hubstate.MovedFrom)
	with, moved := mirror.MovedWith(job)
	if from == "" && !moved {
		return
	}
	b.assign(ptr.Deref(job.Status.FailedIndexes, ""), -1) // before or after the move
	switch {
	case !moved, with.CompletedIndexes == "" && with.Succeeded > 0:
		b.assign(job.Status.CompletedIndexes, -1)
	case with.CompletedIndexes == "":
	case onlyBefore(job, from):
		b.assign(with.CompletedIndexes, b.number(from))
	default:
		b.assign(with.CompletedIndexes, -1)
	}
}

// onlyBefore reports whether a Job was in just this worker before its last move, by its account.
// Not every worker has one.
func onlyBefore(job *batchv1.Job, from string) bool {
	known := false
	for _, m := range usage.Read(job) {
		if m.Left && m.Worker != from {
			return false
		}
		known = known || m.Left
	}
	return known
}

func (b *indexBuilder) assign(indexes string, worker int16) {
	for _, i := range intervals.ParseLenient(indexes, len(b.workers)).First(len(b.workers)) {
		b.workers[i] = worker
	}
}

func (b *indexBuilder) number(worker string) int16 {
	if at := slices.Index(b.names, worker); at >= 0 {
		return int16(at) //nolint:gosec // few workers
	}
	b.names = append(b.names, worker)
	return int16(len(b.names) - 1) //nolint:gosec // few workers
}

func (b *indexBuilder) addPods(pods []corev1.Pod) {
	for i := range pods {
		index, err := strconv.Atoi(show.PodIndex(&pods[i]))
		if err != nil || index < 0 || index >= len(b.states) {
			continue
		}
		if worker := access.WorkerOf(&pods[i]); worker != "" {
			b.workers[index] = b.number(worker)
		}
		if pods[i].Status.Phase == corev1.PodRunning {
			b.states[index] = IndexRunning
		}
	}
}

func (b *indexBuilder) mark(indexes string, state IndexState) {
	for _, i := range intervals.ParseLenient(indexes, len(b.states)).First(len(b.states)) {
		b.states[i] = state
	}
}

func (b *indexBuilder) build() *IndexMap {
	m := &IndexMap{Total: len(b.states), Workers: b.names, PerWorker: make([]WorkerIndexes, len(b.names)+1)}
	for i, name := range b.names {
		m.PerWorker[i].Name = name
	}
	m.Runs = make([][3]int, 0, b.runs())
	for i, state := range b.states {
		m.Counts[state]++
		worker := int(b.workers[i])
		m.PerWorker[(worker+len(m.PerWorker))%len(m.PerWorker)].Counts[state]++
		if n := len(m.Runs); n > 0 && m.Runs[n-1][1] == int(state) && m.Runs[n-1][2] == worker {
			m.Runs[n-1][0]++
			continue
		}
		m.Runs = append(m.Runs, [3]int{1, int(state), worker})
	}
	if m.PerWorker[len(b.names)].Counts == [indexStates]int{} {
		m.PerWorker = m.PerWorker[:len(b.names)]
	}
	m.Version = m.version()
	return m
}

// runs is how many runs there are.
func (b *indexBuilder) runs() int {
	n := 1
	for i := range b.states[1:] {
		if b.states[i] != b.states[i+1] || b.workers[i] != b.workers[i+1] {
			n++
		}
	}
	return n
}

func (m *IndexMap) version() string {
	hash := fnv.New64a()
	buffer := fmt.Appendf(nil, "%q", m.Workers)
	for _, run := range m.Runs {
		_, _ = hash.Write(buffer) // a hash never fails
		buffer = buffer[:0]
		for _, n := range run {
			buffer = binary.AppendVarint(buffer, int64(n))
		}
	}
	_, _ = hash.Write(buffer)
	return strconv.FormatUint(hash.Sum64(), 36)
}
