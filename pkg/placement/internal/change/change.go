// Package change says of what happens in a worker which Jobs it may help: Jobs wait on the hub
// because each worker lacks something. It is pure.
//
//	Ledger, Pods, Store ──> Change ──> Set ──> Line.Walk: which Jobs are tried
//	             (a worker's objects)           ▲
//	Answer.HelpedBy: the kinds that can help ───┘
//
// A Ledger, Pods or a Store tells of a Change once. It tells of the next one of that kind after
// somebody has read what changed. So whoever finds something lacking reads it again when he's told.
package change

import "maps"

// Kinds of changes.
type Kinds uint8

const (
	// Room: more resources are free.
	Room Kinds = 1 << iota
	// Nodes: some have come or gone, or have other labels, taints or sizes.
	Nodes
	// Pods: some are on other nodes, or namespaces by which Pods are selected have other labels.
	Pods
	// Admission: what the API server admits Pods by, say a quota.
	Admission
	// Devices, and the claims for them.
	Devices
	// Volumes, and the claims for them.
	Volumes

	// All kinds.
	All Kinds = 1<<iota - 1
)

// Change is one that a worker tells of.
type Change struct {
	Kinds Kinds
	// Namespace whose Jobs it may help; empty: all.
	Namespace string
}

// Set are some changes. Its zero value is empty.
type Set struct {
	every Kinds
	in    map[string]Kinds // of one namespace only
}

// Of are the kinds of those that may help Jobs of a namespace.
func (s *Set) Of(namespace string) Kinds {
	if s == nil {
		return 0
	}
	return s.every | s.in[namespace]
}

// Add a Change.
func (s *Set) Add(c Change) {
	if c.Namespace == "" {
		s.every |= c.Kinds
		return
	}
	if s.in == nil {
		s.in = map[string]Kinds{}
	}
	s.in[c.Namespace] |= c.Kinds
}

// Take removes a Change, and reports whether some of it was there. One for all namespaces removes
// those for each of them; what is there for all doesn't go for one.
func (s *Set) Take(c Change) bool {
	if c.Namespace != "" {
		had := s.in[c.Namespace] & c.Kinds
		s.without(c.Namespace, c.Kinds)
		return had != 0
	}
	had := s.every & c.Kinds
	s.every &^= c.Kinds
	for namespace, kinds := range s.in {
		had |= kinds & c.Kinds
		s.without(namespace, c.Kinds)
	}
	return had != 0
}

func (s *Set) without(namespace string, kinds Kinds) {
	if left := s.in[namespace] &^ kinds; left != 0 {
		s.in[namespace] = left
	} else {
		delete(s.in, namespace)
	}
}

// Sets are those of workers, by their names.
type Sets map[string]*Set

// Add a Change of a worker.
func (s Sets) Add(worker string, c Change) {
	if s[worker] == nil {
		s[worker] = &Set{}
	}
	s[worker].Add(c)
}

// Join adds all that is in others.
func (s Sets) Join(others Sets) {
	for worker, o := range others {
		s.Add(worker, Change{Kinds: o.every})
		for namespace, kinds := range o.in {
			s.Add(worker, Change{kinds, namespace})
		}
	}
}

// Clone shares nothing with the original.
func (s Sets) Clone() Sets {
	clone := make(Sets, len(s))
	for worker, of := range s {
		clone[worker] = &Set{of.every, maps.Clone(of.in)}
	}
	return clone
}
