package usage

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// Usage are resource-seconds in one worker. A Pod-second is one of the resource pods.
type Usage struct {
	Worker   string
	Resource corev1.ResourceName
	// Total, and the part of it that was done again elsewhere. Unknown is what may be missing in
	// Total.
	Total, Repeated, Unknown float64
}

// Cost is what the resource-seconds cost.
func (u *Usage) Cost(prices v1alpha1.Cost) float64 {
	return prices.Of(u.Resource, u.Total) / time.Hour.Seconds()
}

// At is the usage at some time, with that of Pods that run until then, by worker and resource.
func (a Account) At(now time.Time) []Usage {
	return a.sum(func(m *Mirror) Seconds { return m.Until(now) })
}

// Settled is the usage that doesn't change any more if nothing else is learnt.
func (a Account) Settled() []Usage { return a.sum((*Mirror).Settled) }

func (a Account) sum(of func(*Mirror) Seconds) []Usage {
	var all []Usage
	for i := range a {
		m := &a[i]
		total := of(m)
		if total == 0 && m.Unknown == 0 {
			continue
		}
		pods := Usage{m.Worker, corev1.ResourcePods, float64(total), float64(m.Repeated(total)), float64(m.Unknown)}
		all = add(all, pods)
		for name, quantity := range m.Requests {
			all = add(all, pods.times(name, quantity.AsApproximateFloat64()))
		}
	}
	return all
}

// times is the usage of a resource of which each Pod has some amount.
func (u Usage) times(name corev1.ResourceName, amount float64) Usage {
	return Usage{u.Worker, name, u.Total * amount, u.Repeated * amount, u.Unknown * amount}
}

// add adds a usage to those of its worker and resource.
func add(all []Usage, u Usage) []Usage {
	i, found := find(all, u)
	if !found {
		return slices.Insert(all, i, u)
	}
	all[i].Total, all[i].Repeated, all[i].Unknown = all[i].Total+u.Total, all[i].Repeated+u.Repeated, all[i].Unknown+u.Unknown
	return all
}

// find finds the usage of the same worker and resource.
func find(all []Usage, u Usage) (i int, found bool) {
	return slices.BinarySearchFunc(all, u, func(a, b Usage) int {
		return cmp.Or(cmp.Compare(a.Worker, b.Worker), cmp.Compare(a.Resource, b.Resource))
	})
}

// Growth is by how much the usage of an account grew: nothing falls.
func Growth(before, after Account) []Usage {
	was := before.Settled()
	var grown []Usage
	for _, u := range after.Settled() {
		if i, found := find(was, u); found {
			u.Total, u.Repeated, u.Unknown = u.Total-was[i].Total, u.Repeated-was[i].Repeated, u.Unknown-was[i].Unknown
		}
		u.Total, u.Repeated, u.Unknown = max(u.Total, 0), max(u.Repeated, 0), max(u.Unknown, 0)
		if u.Total > 0 || u.Repeated > 0 || u.Unknown > 0 {
			grown = append(grown, u)
		}
	}
	return grown
}

// rank compares resources: the known ones first, in their order, then by name.
func rank(known []corev1.ResourceName, a, b corev1.ResourceName) int {
	place := func(name corev1.ResourceName) int {
		if i := slices.Index(known, name); i >= 0 {
			return i
		}
		return len(known)
	}
	return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a, b))
}
