package scheduling

import (
	corev1 "k8s.io/api/core/v1"
)

// Shortage is a resource of which no node has enough for one Pod of a Job.
type Shortage struct {
	Name corev1.ResourceName
	// Requested by each Pod, as the API server would make it.
	Requested int64
	// Most is what the node has left that has most of it.
	Most int64
}

// Shortages says what is short where a verdict comes from requests: of what is free now, or, for
// Never, of what Pods that end by themselves leave.
func Shortages(s *Snapshot, j *Job, verdict Verdict) []Shortage {
	if verdict == FitsNow {
		return nil
	}
	shortages, _ := bounded(j, func(j *Job, b *budget) []Shortage {
		v := view{s, Now, b}
		if verdict == Never {
			v.moment = Ever
		}
		return v.shortages(j)
	})
	return shortages
}

func (v view) shortages(j *Job) []Shortage {
	a := v.admit(j, v.work)
	if a.refused != nil {
		return nil
	}
	most, some := a.most(v)
	if !some {
		return nil
	}
	var shortages []Shortage
	for i := range a.insufficient {
		if r := &a.insufficient[i]; most[i] < r.amount {
			shortages = append(shortages, Shortage{r.name, r.amount, most[i]})
		}
	}
	return shortages
}

// most is the largest amount of each requested resource that is left on a node that suits the Job;
// false: no node does. Where devices stand for a resource, they judge.
func (j *Job) most(v view) (most []int64, some bool) {
	most = make([]int64, len(j.insufficient))
	suits := j.suits(v)
	for i, n := range v.Nodes {
		if p := newPlace(v, i); suits(&p) != nil {
			continue
		}
		some = true
		free := v.free(n)
		for r := range j.insufficient {
			request := &j.insufficient[r]
			left := free.Get(request.name)
			if v.byDevices(n, request.name) {
				left = request.amount
			}
			most[r] = max(most[r], left)
		}
	}
	return most, some
}
