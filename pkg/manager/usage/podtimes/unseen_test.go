package podtimes

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// mirrorsPod is a Pod of a Job that says that this is a mirror of an origin, for a Job of a name.
func mirrorsPod(of types.NamespacedName, origin v1alpha1.Origin, name string) *corev1.Pod {
	p := running(types.UID("pod-"+of.String()), began)
	p.Namespace, p.OwnerReferences[0].UID, p.OwnerReferences[0].Name = of.Namespace, types.UID(of.String()), of.Name
	p.Labels = map[string]string{v1alpha1.LabelMirrorID: mirror.NewID(origin, types.NamespacedName{Namespace: of.Namespace, Name: name})}
	slim, _ := Slim(p)
	slim, _ = Slim(slim)
	return slim
}

// What Pods say of the Jobs that control them is asked for, some of them at a time.
func TestUnseen(t *testing.T) {
	s, origin := newStory(t), v1alpha1.Origin("hub-a")
	jobs := map[types.NamespacedName]bool{}
	add := func(n int, origin v1alpha1.Origin, named string) {
		key := types.NamespacedName{Namespace: "team", Name: fmt.Sprint("job-", n)}
		s.Set(mirrorsPod(key, origin, key.Name+named))
		key.Name += named
		jobs[key] = true
	}
	for n := range 2 * unseenAtOnce {
		add(n, origin, "")
	}
	add(1000, "hub-b", "")
	add(1001, origin, "-of-another-name")
	seen := types.NamespacedName{Namespace: "team", Name: "job-0"}
	s.seen = map[types.NamespacedName]bool{seen: true}
	found := map[types.NamespacedName]bool{}
	for _, want := range []int{unseenAtOnce, unseenAtOnce - 1, 0} {
		unseen := s.Unseen()
		if len(unseen) != want {
			t.Fatalf("%d are named, want %d", len(unseen), want)
		}
		for _, key := range unseen {
			if key == seen || found[key] || !jobs[key] {
				t.Errorf("%s is named", key)
			}
			found[key] = true
		}
	}
	s.pass(unseenAgain)
	if got := len(s.Unseen()); got != unseenAtOnce {
		t.Errorf("later, %d are named", got)
	}
	s.Forget()
	if got := s.Unseen(); len(got) > 0 {
		t.Errorf("%v are named of no Pods", got)
	}
}

// A tenant of a worker makes up any number of mirrors. Those of other namespaces are named at once,
// even if there are more namespaces than Jobs to name: then in turn.
func TestUnseenOfOthers(t *testing.T) {
	s := newStory(t)
	add := func(namespace string, n int) {
		key := types.NamespacedName{Namespace: namespace, Name: fmt.Sprint("job-", n)}
		s.Set(mirrorsPod(key, "hub-a", key.Name))
	}
	for n := range 5000 {
		add("evil", n)
	}
	named := func() map[string]int {
		of := map[string]int{}
		for _, key := range s.Unseen() {
			of[key.Namespace]++
		}
		return of
	}
	add("team-0", 0)
	add("team-1", 0)
	if of := named(); of["team-0"] != 1 || of["team-1"] != 1 || of["evil"] != unseenAtOnce-2 {
		t.Errorf("%v are named", of)
	}
	for n := range 3 * unseenAtOnce {
		add(fmt.Sprint("team-", n), 1)
	}
	all := map[string]int{}
	for range 4 {
		sum := 0
		for namespace, n := range named() {
			all[namespace] += n
			sum += n
		}
		if sum != unseenAtOnce {
			t.Errorf("%d are named at a time", sum)
		}
	}
	for n := range 3 * unseenAtOnce {
		if namespace := fmt.Sprint("team-", n); all[namespace] != 1 {
			t.Errorf("%d are named of %s", all[namespace], namespace)
		}
	}
}

// Of very many made-up mirrors some are looked at.
func TestUnseenLooks(t *testing.T) {
	looks := 0
	s := New("hub-a", time.Now, func() time.Duration { return 0 }, func(types.NamespacedName) bool {
		looks++
		return false
	})
	for n := range maxUnseenLooks + 1000 {
		key := types.NamespacedName{Namespace: "evil", Name: fmt.Sprint("job-", n)}
		s.Set(mirrorsPod(key, "hub-a", key.Name))
	}
	if unseen := s.Unseen(); len(unseen) != unseenAtOnce || looks > maxUnseenLooks {
		t.Errorf("%d are named, %d are looked at", len(unseen), looks)
	}
}
