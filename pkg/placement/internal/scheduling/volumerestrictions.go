package scheduling

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// share reports whether what the Pods of one Job take of volumes may be in the way of another's:
// both bind some, have some of a driver that limits them, or a claim of one Pod at a time.
func (v view) share(a, b *Job) bool {
	if v.Volumes == nil || !usesClaims(a.spec) || !usesClaims(b.spec) {
		return false
	}
	one, other := bindingOf(a, v), bindingOf(b, v)
	if one != nil && other != nil && len(one.shared)+len(one.own) > 0 && len(other.shared)+len(other.own) > 0 {
		return true
	}
	if intersect(v, v.attachments(a), v.attachments(b), func(w, o attachments) bool { return o.driver == w.driver }) {
		return true
	}
	return volumeRestrictions(a, v) != nil && intersect(v, claimsOf(a.spec), claimsOf(b.spec), func(c, o string) bool { return c == o })
}

// intersect reports whether something of one list is in another.
func intersect[T any](v view, some, others []T, same func(T, T) bool) bool {
	v.work.spend(len(some)*len(others), volumesField)
	return slices.ContainsFunc(some, func(one T) bool {
		return slices.ContainsFunc(others, func(other T) bool { return same(one, other) })
	})
}

var claimInUse = Reason{
	"VolumeRestrictions", "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode", volumesField,
}

// restrictionsState keeps claims of access mode ReadWriteOncePod for one Pod at a time.
type restrictionsState struct {
	eachNode
	inUse bool
}

func volumeRestrictions(j *Job, v view) state {
	if v.Volumes == nil {
		return nil
	}
	var exclusive []string
	for _, name := range claimsOf(j.spec) {
		claim := v.Volumes.Claims[j.namespace][name]
		if claim != nil && slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteOncePod) {
			exclusive = append(exclusive, name)
		}
	}
	if len(exclusive) == 0 {
		return nil
	}
	return &restrictionsState{v.eachNode(), v.uses(j.namespace, exclusive)}
}

// claimsOf are the names of the claims that a Pod shares with others.
func claimsOf(spec *corev1.PodSpec) []string {
	var names []string
	for i := range spec.Volumes {
		if c := spec.Volumes[i].PersistentVolumeClaim; c != nil {
			names = append(names, c.ClaimName)
		}
	}
	return names
}

// claimsOfPod are the names of all claims of a Pod that exists.
func claimsOfPod(pod *corev1.Pod) []string {
	names := claimsOf(&pod.Spec)
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; v.Ephemeral != nil {
			names = append(names, pod.Name+"-"+v.Name)
		}
	}
	return names
}

// uses reports whether a Pod that is in the way has one of these claims.
func (v view) uses(namespace string, claims []string) bool {
	for _, n := range v.Nodes {
		for _, p := range n.claiming {
			v.work.spend(podWork+len(p.claims)*len(claims), volumesField)
			if v.hinders(p.Lasts) && p.Value().namespace == namespace &&
				slices.ContainsFunc(p.claims, func(c string) bool { return slices.Contains(claims, c) }) {
				return true
			}
		}
	}
	return false
}

func (s *restrictionsState) check(*place) *Reason {
	if s.inUse {
		return &claimInUse
	}
	return nil
}

func (s *restrictionsState) add(*place) bool {
	s.inUse = true
	return false
}

func (s *restrictionsState) clone() state {
	c := *s
	return &c
}
