package capacity

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Sum adds amounts up in place, so that many of them cost no more than they have names. Its zero
// value is nothing.
type Sum struct {
	// only has the names of Others that count; nil: all do.
	only map[corev1.ResourceName]int64
	// most bounds the names; zero: there is no bound.
	most  int
	total Resources
}

// SumOf begins with an amount. Of what is added, only its names count: what a node doesn't have
// isn't free there because it isn't taken any more.
func SumOf(r Resources) Sum {
	s := Sum{total: r}
	s.total.Others = maps.Clone(r.Others)
	s.count(s.total.Others)
	return s
}

// count has only some names count.
func (s *Sum) count(only map[corev1.ResourceName]int64) {
	if s.only = only; only == nil {
		s.only = map[corev1.ResourceName]int64{}
	}
}

// Add adds n × o.
func (s *Sum) Add(o *Resources, n int64) {
	if n == 0 {
		return
	}
	s.total.MilliCPU += n * o.MilliCPU
	s.total.Memory += n * o.Memory
	s.total.EphemeralStorage += n * o.EphemeralStorage
	s.total.Pods += n * o.Pods
	if have := len(s.total.Others); have < s.most && have+len(o.Others) > s.most { // it's full from now on
		for _, name := range slices.Sorted(maps.Keys(o.Others)) {
			s.add(name, n*o.Others[name])
		}
		return
	}
	for name, amount := range o.Others {
		s.add(name, n*amount)
	}
}

func (s *Sum) add(name corev1.ResourceName, amount int64) {
	if _, counts := s.only[name]; s.only != nil && !counts {
		return
	}
	if _, known := s.total.Others[name]; !known && s.most > 0 && len(s.total.Others) >= s.most {
		return
	}
	if s.total.Others == nil {
		s.total.Others = map[corev1.ResourceName]int64{}
	}
	s.total.Others[name] += amount
}

// change adds n × o, or takes it back where n is negative: then no name without an amount is kept.
func (s *Sum) change(o *Resources, n int64) {
	if s.Add(o, n); n > 0 {
		return
	}
	for name := range o.Others {
		if s.total.Others[name] == 0 {
			delete(s.total.Others, name)
		}
	}
}

// Total is the sum. It's shared: nothing may be added any more.
func (s *Sum) Total() Resources { return s.total }

// less is what is left of r without what Pods take that are there, and what is held for others. Of
// what Pods take, only the names count that r has, or that something is held of: nobody asks for
// the others, and Pods may bring any number of them.
func (r Resources) less(there, held *Sum) Resources {
	others := r.Others
	if len(others)+len(held.total.Others) > 0 {
		r.Others = make(map[corev1.ResourceName]int64, len(others)+len(held.total.Others))
	}
	for name, has := range others {
		r.Others[name] = has - there.total.Others[name] - held.total.Others[name]
	}
	for name, amount := range held.total.Others {
		if _, has := others[name]; !has {
			r.Others[name] = -there.total.Others[name] - amount
		}
	}
	for _, s := range []*Sum{there, held} {
		r.MilliCPU -= s.total.MilliCPU
		r.Memory -= s.total.Memory
		r.EphemeralStorage -= s.total.EphemeralStorage
		r.Pods -= s.total.Pods
	}
	return r
}
