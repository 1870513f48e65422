package packed

import (
	"encoding/hex"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/jobferry/jobferry/pkg/mirror/mirrortest"
)

var begin = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

func pack(t testing.TB, job *batchv1.Job) *Job {
	t.Helper()
	object, err := Pack(job)
	if err != nil {
		t.Fatal(err)
	}
	p, is := object.(*Job)
	if !is {
		t.Fatalf("a Job became a %T", object)
	}
	return p
}

func running() *batchv1.Job {
	return mirrortest.New("j").ManagedBy("jobferry.dev/dispatcher").Label("team", "a").Indexed(5).Started(begin).Pods(2, 1, 0).Counted(1, 1).CompletedIndexes("0").Obj()
}

func TestAJobIsUnpackedAsItWas(t *testing.T) {
	for name, job := range map[string]*batchv1.Job{
		"running":   running(),
		"finished":  mirrortest.From(running()).Completed(begin.Add(time.Minute)).True(batchv1.JobComplete, "", begin).Obj(),
		"suspended": mirrortest.New("j").Suspend(true).Obj(),
	} {
		t.Run(name, func(t *testing.T) {
			before := job.DeepCopy()
			before.SetGroupVersionKind(jobKind)
			p := pack(t, job)
			for _, state := range []string{"recent", "settled", "read again"} {
				first := p.Unpack()
				if !equality.Semantic.DeepEqual(first, before) {
					t.Errorf("%s: -packed +unpacked:\n%s", state, cmp.Diff(before, first))
				}
				first.Name, first.Status.Active = "changed", 7
				if again := p.Unpack(); !equality.Semantic.DeepEqual(again, before) {
					t.Errorf("%s: a change of what was unpacked is in the store:\n%s", state, cmp.Diff(before, again))
				}
				if state == "recent" {
					forgetRecent()
				} else {
					p.Shared()
				}
			}
			if p.Facts() != FactsOf(before) {
				t.Errorf("facts are %+v, want %+v", p.Facts(), FactsOf(before))
			}
		})
	}
}

// What differs from the dictionary in all is held as well, only larger.
func TestAJobUnlikeTheUsualIsUnpackedAsItWas(t *testing.T) {
	noise := make([]byte, 300_000)
	rand.NewChaCha8([32]byte{}).Read(noise) //nolint:errcheck // it never fails
	for name, text := range map[string]string{"noise": hex.EncodeToString(noise), "one letter": strings.Repeat("x", 1_000_000), "nothing": ""} {
		job := &batchv1.Job{}
		job.Spec.Template.Spec.Containers = []corev1.Container{{Args: []string{text}}}
		var all sync.WaitGroup
		for range 4 { // informers pack and unpack side by side
			all.Go(func() {
				object, err := Pack(job)
				p, is := object.(*Job)
				if err != nil || !is {
					t.Errorf("%s: %T, %v", name, object, err)
				} else if again := p.Unpack(); !equality.Semantic.DeepEqual(again.Spec, job.Spec) {
					t.Errorf("%s: the Job has changed", name)
				}
			})
		}
		all.Wait()
	}
}

func TestAUsualJobTakesLittle(t *testing.T) {
	job := usual(1)
	p := pack(t, job)
	forgetRecent()
	if whole, held := job.Size(), len(p.prefix)+len(p.rest); held > whole/2 {
		t.Errorf("%d bytes of protobuf are held in %d", whole, held)
	}
}

func TestFacts(t *testing.T) {
	key := types.NamespacedName{Namespace: running().Namespace, Name: "j"}
	for name, row := range map[string]struct {
		job  *batchv1.Job
		want Facts
	}{
		"new":       {mirrortest.New("j").Obj(), Facts{Key: key}},
		"managed":   {mirrortest.New("j").ManagedBy("m").Obj(), Facts{Key: key, ManagedBy: "m"}},
		"suspended": {mirrortest.New("j").Suspend(true).Obj(), Facts{Key: key, Suspended: true}},
		"running":   {mirrortest.New("j").Started(begin).Obj(), Facts{Key: key, Started: true}},
		"finished":  {mirrortest.New("j").Started(begin).True(batchv1.JobComplete, "", begin).Obj(), Facts{Key: key, Started: true, Finished: true}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := FactsOf(row.job); got != row.want {
				t.Errorf("got %+v, want %+v", got, row.want)
			}
		})
	}
}

func TestAnInformerFindsNameAndVersion(t *testing.T) {
	job := running()
	job.ResourceVersion = "17"
	p := pack(t, job)
	name, err := cache.ObjectToName(p)
	if err != nil || name.String() != job.Namespace+"/j" {
		t.Errorf("the name is %s (%v)", name, err)
	}
	if is, err := meta.Accessor(p); err != nil || is.GetResourceVersion() != "17" {
		t.Errorf("the version is %v (%v)", is, err)
	}
	if again, err := Pack(p); err != nil || again != any(p) {
		t.Errorf("packed again it is %v (%v)", again, err)
	}
}

// seen records what a handler of batchv1.Jobs is told.
type seen struct{ events []any }

func (s *seen) OnAdd(object any, _ bool)   { s.events = append(s.events, object) }
func (s *seen) OnUpdate(before, after any) { s.events = append(s.events, before, after) }
func (s *seen) OnDelete(object any)        { s.events = append(s.events, object) }

func TestHandlersSeeJobs(t *testing.T) {
	was, is := running(), mirrortest.From(running()).Pods(1, 1, 0).Obj()
	is.ResourceVersion = "2"
	to := &seen{}
	h := Handler(to)
	h.OnAdd(pack(t, was), true)
	h.OnUpdate(pack(t, was), pack(t, is))
	h.OnDelete(cache.DeletedFinalStateUnknown{Key: "k", Obj: pack(t, is)})
	h.OnDelete(cache.DeletedFinalStateUnknown{Key: "k"})
	want := []any{was, was, is, cache.DeletedFinalStateUnknown{Key: "k", Obj: is}, cache.DeletedFinalStateUnknown{Key: "k"}}
	if !equality.Semantic.DeepEqual(to.events, want) {
		t.Errorf("-want +got:\n%s", cmp.Diff(want, to.events))
	}
}

// A list after a watch that couldn't be continued has nearly all Jobs as they were.
func TestHandlersDoNotSeeUnchangedJobs(t *testing.T) {
	for name, c := range map[string]struct {
		before, after string
		want          int
	}{
		"the same version":   {"1", "1", 0},
		"another version":    {"1", "2", 2},
		"nobody knows if so": {"", "", 2},
	} {
		before, after, to := running(), running(), &seen{}
		before.ResourceVersion, after.ResourceVersion = c.before, c.after
		Handler(to).OnUpdate(pack(t, before), pack(t, after))
		if len(to.events) != c.want {
			t.Errorf("%s: the handler got %d objects, want %d", name, len(to.events), c.want)
		}
	}
}

// TestHandlersShareWhatIsUnpacked: the manager has several, and each event has two Jobs.
func TestHandlersShareWhatIsUnpacked(t *testing.T) {
	var states []*Job
	for _, version := range []string{"1", "2", "3"} {
		job := running()
		job.ResourceVersion = version
		states = append(states, pack(t, job))
	}
	handlers := []*seen{{}, {}, {}}
	for i, state := range states[1:] {
		for _, h := range handlers {
			Handler(h).OnUpdate(states[i], state)
		}
	}
	for i, h := range handlers {
		if len(h.events) != 4 {
			t.Fatalf("handler %d got %d Jobs", i, len(h.events))
		}
		if h.events[1] != h.events[2] || h.events[0] == h.events[1] {
			t.Errorf("handler %d: the states aren't each unpacked once: %p", i, h.events)
		}
		if !slices.Equal(h.events, handlers[0].events) {
			t.Errorf("handlers 0 and %d share nothing", i)
		}
	}
	if states[2].Unpack() == handlers[0].events[3] {
		t.Error("a reader shares a Job with the handlers")
	}
}

// A worker decides over the names of its Jobs.
func TestANameThatNoAPIServerAcceptsIsRefused(t *testing.T) {
	if _, err := Pack(mirrortest.New(strings.Repeat("x", 1<<16)).Obj()); err == nil {
		t.Error("a name of 64 KiB was packed")
	}
}

func TestAnInformerHasTheKeyOnlyOnce(t *testing.T) {
	p := pack(t, running())
	if n := testing.AllocsPerRun(10, func() { _ = p.Facts() }); n != 0 {
		t.Errorf("the name of a Job takes %v allocations", n)
	}
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(p)
	if err != nil || unsafe.StringData(key) != unsafe.StringData(p.prefix) {
		t.Errorf("the key %s isn't that of the Job (%v)", key, err)
	}
}
