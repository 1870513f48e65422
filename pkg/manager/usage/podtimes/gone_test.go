package podtimes

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/util/objectnames"
)

func TestJobsThatAreGoneAreBounded(t *testing.T) {
	s := newStory(t)
	for i := range maxGone + 10 {
		p := running(types.UID(fmt.Sprint(i)), began)
		p.OwnerReferences[0].UID = types.UID(fmt.Sprint("job", i))
		s.Set(p)
		s.Remove(p.UID)
	}
	if len(s.jobs) != maxGone || s.gone.Len() != maxGone || len(s.pods) != 0 {
		t.Errorf("%d Jobs, %d gone, %d Pods", len(s.jobs), s.gone.Len(), len(s.pods))
	}
}

// What is kept of a Job that is gone doesn't stay: a worker has any number of them in time. That of
// a mirror without Pods does.
func TestJobsThatAreGoneAreForgotten(t *testing.T) {
	s := newStory(t)
	gone := func(uid types.UID) {
		p := running("pod-"+uid, s.now)
		p.OwnerReferences[0].UID, p.OwnerReferences[0].Name = uid, string(uid)
		s.Set(p)
		s.Set(over(p, s.now.Add(time.Second), corev1.PodSucceeded))
		s.Remove(p.UID)
	}
	s.seen = map[types.NamespacedName]bool{{Name: "suspended"}: true}
	gone("suspended")
	gone("retried")
	for i := range 1000 {
		s.pass(time.Second)
		gone(types.UID(fmt.Sprint(i)))
		if i%60 == 0 {
			gone("retried")
		}
	}
	if most := int(keepGone/time.Second) + 3; len(s.jobs) > most || s.gone.Len() != len(s.jobs) || s.goneOf[""] != s.gone.Len() {
		t.Errorf("%d Jobs, %d gone, at most %d", len(s.jobs), s.gone.Len(), most)
	}
	for uid, want := range map[types.UID]int64{"suspended": 1, "retried": 18, "999": 1} {
		if got := s.Times(objectnames.ID{UID: uid}).Count; got != want {
			t.Errorf("%s: %d Pods, want %d", uid, got, want)
		}
	}
}

// A tenant of a worker makes Pods of many Jobs come and go: the sums of others stay.
func TestJobsOfOthersThatAreGoneAreKept(t *testing.T) {
	s := newStory(t)
	gone := func(namespace string, i int) objectnames.ID {
		p := running(types.UID(fmt.Sprint(namespace, i)), began)
		p.Namespace, p.OwnerReferences[0].UID = namespace, types.UID(fmt.Sprint("job", namespace, i))
		s.Set(p)
		s.Set(over(p, began.Add(time.Minute), corev1.PodSucceeded))
		s.Remove(p.UID)
		return objectnames.ID{Namespace: namespace, UID: p.OwnerReferences[0].UID}
	}
	var jobs []objectnames.ID
	for i := range 100 {
		jobs = append(jobs, gone("team", i))
	}
	for i := range 2 * maxGone {
		gone("evil", i)
	}
	for _, uid := range jobs {
		if got := s.Times(uid); got.Count != 1 {
			t.Fatalf("of %s is known: %+v", uid, got)
		}
	}
	for i := range maxGone + 100 {
		gone(fmt.Sprint("evil-", i), 0)
	}
	if len(s.jobs) != maxGone || s.gone.Len() != maxGone || len(s.goneOf) > maxGone {
		t.Errorf("%d Jobs, %d gone, of %d namespaces", len(s.jobs), s.gone.Len(), len(s.goneOf))
	}
}
