package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/jobferry/jobferry/pkg/util/text"
)

func nameOf(p *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
}

// slimmed is a shown Pod as a Store takes it in.
func slimmed(p *corev1.Pod) *corev1.Pod {
	slim, _ := Slim(p, true)
	return slim
}

func newTestStore() (*Store, *clocktesting.FakeClock, *[]string) {
	clock, changed := clocktesting.NewFakeClock(time.Now()), []string{}
	return NewStore(clock.Now, func(name types.NamespacedName) { changed = append(changed, name.Name) }), clock, &changed
}

// What a worker answers can't add a Pod that its watch doesn't show, and a Pod without a UID can't
// be told from others.
func TestPodsThatArentAdded(t *testing.T) {
	s, _, changed := newTestStore()
	s.Refill(endedPod("another"))
	nobody := endedPod("nobody")
	nobody.UID = ""
	s.Set(slimmed(nobody))
	if len(s.Keys()) > 0 || len(*changed) > 0 {
		t.Errorf("has %v, changed %v", s.Keys(), *changed)
	}
	hidden, _ := Slim(endedPod("p"), false)
	s.Set(hidden)
	s.Refill(endedPod("p"))
	if p, has := s.Get(nameOf(hidden)); !has || p.Digest == "" || len(*changed) != 2 {
		t.Errorf("has %+v, changed %v", p, *changed)
	}
}

// Reports that a worker answers with, and that the feed doesn't count, take little, however large
// they are. Those for which there's no room say whether the Pod is ready.
func TestLargeReportsThatAreRefilled(t *testing.T) {
	const pods = 700
	s, _, _ := newTestStore()
	noise, random := make([]byte, maxConditions*text.MaxMessage), rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = byte('!' + random.IntN(90))
	}
	large := []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	for message := range slices.Chunk(noise, text.MaxMessage) {
		large = append(large, corev1.PodCondition{Type: corev1.PodConditionType(fmt.Sprint("c-", len(large))), Status: corev1.ConditionTrue, Message: string(message)})
	}
	for round := range 2 { // those of a round go
		held := 0
		for i := range pods {
			pod := endedPod(fmt.Sprint("p-", i))
			pod.UID, pod.Status.Phase = types.UID(fmt.Sprint(round, "-", i)), corev1.PodRunning
			hidden, _ := Slim(pod, false)
			s.Set(hidden)
			pod.Status.Conditions = large
			for _, key := range numbers {
				metav1.SetMetaDataAnnotation(&pod.ObjectMeta, key, fmt.Sprint(math.MaxInt32-i))
			}
			s.Refill(pod)
			p, _ := s.Get(nameOf(pod))
			if held += len(p.report); p.Digest == "" || !p.Ready || p.Phase != corev1.PodRunning {
				t.Fatalf("digest %q, phase %s, ready %t", p.Digest, p.Phase, p.Ready)
			}
		}
		if most := maxRefilled + pods*smallReport; held > most || held < maxRefilled/2 {
			t.Errorf("%d KiB are held, and not %d at most", held>>10, most>>10)
		}
		for i := range pods {
			s.Remove(types.UID(fmt.Sprint(round, "-", i)))
		}
	}
	if s.refilled != 0 {
		t.Errorf("%d bytes of no Pod", s.refilled)
	}
}

func TestStore(t *testing.T) {
	s, clock, changed := newTestStore()
	pod := endedPod("p")
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending}
	s.Set(slimmed(pod))
	s.Set(slimmed(pod)) // no change
	p, has := s.Get(nameOf(pod))
	if !has || !p.Quiet || p.Job != "job" || p.Mirror != "mirror" || p.Since.IsZero() || len(*changed) != 1 {
		t.Fatalf("has %+v, changed %v", p, *changed)
	}
	s.Shown(nameOf(pod), p.UID, "another")
	s.Shown(nameOf(pod), p.UID, p.Digest)
	if p, _ = s.Get(nameOf(pod)); !p.Since.IsZero() {
		t.Errorf("shown, but since %s", p.Since)
	}
	clock.Step(time.Hour)
	pod.Status = endedPod("p").Status
	s.Set(slimmed(pod))
	p, _ = s.Get(nameOf(pod))
	report, err := p.Report()
	if err != nil || !p.Over() || !p.Since.Equal(clock.Now()) || report.Status.ContainerStatuses[0].Name != "main" || report.Status.PodIP != "" || p.Past {
		t.Errorf("error %v, has %+v", err, p)
	}
	s.Removed(nameOf(pod), "another")
	if p, _ = s.Get(nameOf(pod)); p.Past {
		t.Error("the shadow of another was removed")
	}
	s.Removed(nameOf(pod), p.UID)
	if p, _ = s.Get(nameOf(pod)); !p.Past {
		t.Error("removed, but to be shown")
	}
	s.Remove(p.UID)
	if _, has := s.Get(nameOf(pod)); has || len(s.Keys()) != 0 || len(s.jobs) != 0 || len(*changed) != 3 {
		t.Errorf("there are %v, changed %v", s.Keys(), *changed)
	}
}

// What had ended long before the process began isn't shown again; what ended since is.
func TestPast(t *testing.T) {
	s, clock, _ := newTestStore()
	for name, row := range map[string]struct {
		ended time.Duration // before the start
		past  bool
	}{"long-ago": {time.Hour, true}, "a-moment-ago": {time.Minute, false}, "since": {-time.Hour, false}} {
		pod := endedPod(name)
		pod.Status.ContainerStatuses[0].State.Terminated.FinishedAt = metav1.NewTime(clock.Now().Add(-row.ended))
		s.Set(slimmed(pod))
		if p, _ := s.Get(nameOf(pod)); p.Past != row.past {
			t.Errorf("%s: past is %v", name, p.Past)
		}
	}
}

// A Pod of an API server that the hub shows nothing of is known, but not reported.
func TestNotShown(t *testing.T) {
	s, _, _ := newTestStore()
	slim, _ := Slim(endedPod("p"), false)
	s.Set(slim)
	if p, has := s.Get(types.NamespacedName{Namespace: "team", Name: "p"}); !has || p.Digest != "" {
		t.Errorf("has %+v", p)
	}
	s.Set(slimmed(endedPod("p")))
	if p, _ := s.Get(types.NamespacedName{Namespace: "team", Name: "p"}); p.Digest == "" {
		t.Error("no report")
	}
}

// While a sweep judges very many Pods, the Store takes in others, and what is gone isn't judged.
func TestASweepDoesntHoldUpTheStore(t *testing.T) {
	s, _, _ := newTestStore()
	const pods = 1000
	for i := range pods {
		pod := endedPod(fmt.Sprint("p", i))
		pod.UID = types.UID(pod.Name)
		s.Set(slimmed(pod))
	}
	seen := 0
	s.Each(func(name types.NamespacedName, g *Pod) {
		if !s.mu.TryLock() {
			t.Fatal("the Store waits for the sweep")
		}
		s.mu.Unlock()
		if seen++; g.Phase != corev1.PodSucceeded || g.Digest == "" {
			t.Errorf("%s: shows %+v", name, g)
		}
		if seen == 1 {
			for _, uid := range s.Keys() {
				s.Remove(uid)
			}
		}
	})
	if seen != 1 {
		t.Errorf("%d Pods are judged, and all but one are gone", seen)
	}
}

// A shown Pod takes at most 1 KB in the manager, with its shadow, which takes some 450 bytes.
func TestMemoryOfAPod(t *testing.T) {
	s := NewStore(time.Now, func(types.NamespacedName) {})
	const pods = 20_000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range pods {
		pod := endedPod(fmt.Sprintf("a-job-of-usual-name-%05d-x7k2p", i))
		pod.UID = types.UID(fmt.Sprintf("6f1f3f3e-7d55-4b2c-9a54-%012d", i))
		s.Set(slimmed(pod))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := (after.HeapAlloc - before.HeapAlloc) / pods
	t.Logf("%d bytes for each Pod", each)
	if each > 700 {
		t.Errorf("a Pod takes %d bytes", each)
	}
	runtime.KeepAlive(s)
}
