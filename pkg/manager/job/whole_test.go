package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/line"
	"github.com/jobferry/jobferry/pkg/manager/packed"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// TestStoriesOfLightJobs: a Job and its mirrors that are held without their Pod templates, or as a
// stub, take the same way as others, and so does a large Job, of which the hub's answers aren't
// remembered.
func TestStoriesOfLightJobs(t *testing.T) {
	for held, row := range map[string]struct{ lightly, enlarges func(*batchv1.Job) }{
		"light": {mirror.Lighten, nil}, "stub": {packed.MakeStub, nil},
		"large": {nil, manyVariables}, "large, stub": {packed.MakeStub, manyVariables},
	} {
		for _, s := range stories {
			t.Run(held+"/"+s.name, func(t *testing.T) {
				w := newWorld(t)
				w.lightly, w.enlarges = row.lightly, row.enlarges
				s.play(w)
				want, err := os.ReadFile(filepath.Join("testdata", s.name+".log"))
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), strings.Join(w.log, "\n")+"\n"); diff != "" {
					t.Errorf("it takes another way (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestAStubLosesNothing: what isn't held of a Job is still there after the manager has replaced its
// lists.
func TestAStubLosesNothing(t *testing.T) {
	w := newWorld(t)
	w.lightly = packed.MakeStub
	theirs := []string{"example.com/a", "example.com/b"}
	job := aJob("train")
	job.Finalizers = slices.Clone(theirs)
	w.submits(job)
	w.step(10 * time.Second)
	if got := w.hub.jobs[jobKey].Finalizers; !slices.Equal(got, append(slices.Clone(theirs), v1alpha1.FinalizerMirror)) {
		t.Errorf("placed: the finalizers are %q", got)
	}
	w.deletes(metav1.DeletePropagationBackground)
	w.step(time.Minute)
	if left := w.hub.jobs[jobKey]; left == nil || !slices.Equal(left.Finalizers, theirs) {
		t.Errorf("deleted: left is %v", left)
	}
}

// manyVariables gives a Job's Pods 3,000 environment variables, which take a hundred bytes each.
func manyVariables(job *batchv1.Job) {
	main := &job.Spec.Template.Spec.Containers[0]
	main.Env = append(main.Env, slices.Repeat([]corev1.EnvVar{{Name: "a"}}, 3000)...)
}

// TestLargeAnswersOfTheHubAreNotRemembered: the hub's answers to writes take little memory until
// the cache shows them, and the mirror of such a Job has all that the Job has.
func TestLargeAnswersOfTheHubAreNotRemembered(t *testing.T) {
	s := newStore(line.NewRuntimes())
	small := aJob("small")
	s.open(keyOf(small)).wrote(small, noon)
	if held := s.open(keyOf(small)).lastWrite.job; held != small {
		t.Errorf("of a small Job is remembered %v", held)
	}
	proto, err := tinyJob(10_000).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	before := heap().HeapAlloc
	for i := range 16 {
		var answer batchv1.Job
		if err := answer.Unmarshal(proto); err != nil {
			t.Fatal(err)
		}
		answer.Name = fmt.Sprint("large-", i)
		s.open(keyOf(&answer)).wrote(&answer, noon)
	}
	took := int64(heap().HeapAlloc) - int64(before) //nolint:gosec // no heap has 2^63 bytes
	t.Logf("16 answers of %d KiB of protobuf take %d KiB", len(proto)>>10, took>>10)
	if took > 1<<20 {
		t.Errorf("16 answers take %d bytes", took)
	}
	runtime.KeepAlive(s)

	w := newWorld(t)
	w.enlarges = manyVariables
	w.submits(aJob("train"))
	w.step(time.Second)
	if m := w.worker("a").api.jobs[jobKey]; m == nil || len(m.Spec.Template.Spec.Containers[0].Env) != 3000 {
		t.Errorf("the mirror is %v", m)
	}
}

// hubReader counts the reads of the hub.
type hubReader struct {
	client.Reader
	answer func(*batchv1.Job) error

	mu             sync.Mutex
	reads, at, max int
}

func (r *hubReader) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	r.mu.Lock()
	r.reads, r.at = r.reads+1, r.at+1
	r.max = max(r.max, r.at)
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.at--
		r.mu.Unlock()
	}()
	whole, ok := into.(*wholeAnswer)
	if !ok {
		return errors.New("not with all fields")
	}
	var job batchv1.Job
	err := r.answer(&job)
	whole.answerWith(toTree(&job))
	return err
}

// TestWhichJobsAreReadAgain: only light ones, and only when a decision may need the template.
func TestWhichJobsAreReadAgain(t *testing.T) {
	light := func(j *batchv1.Job) { mirror.Lighten(j) }
	placed := func(j *batchv1.Job) { hubstate.Set(j, hubstate.Changes{hubstate.Cluster: "a"}) }
	for name, row := range map[string]struct {
		job   []func(*batchv1.Job)
		world func(*dispatch.Snapshot)
		reads int
		// edited: its recent fields may have changed.
		edited bool
	}{
		"edited":                      {[]func(*batchv1.Job){placed}, nil, 1, true},
		"whole":                       {[]func(*batchv1.Job){placed}, nil, 0, false},
		"light":                       {[]func(*batchv1.Job){light}, nil, 1, false},
		"light, placed":               {[]func(*batchv1.Job){light, placed}, nil, 1, false},
		"light, suspended":            {[]func(*batchv1.Job){light, suspended(true)}, nil, 0, false},
		"light, suspended, placed":    {[]func(*batchv1.Job){light, suspended(true), placed}, nil, 1, false},
		"light, suspended, has quota": {[]func(*batchv1.Job){light, suspended(true)}, func(s *dispatch.Snapshot) { s.Admission.QuotaReserved = true }, 1, false},
		"light, not dispatched":       {[]func(*batchv1.Job){light}, func(s *dispatch.Snapshot) { s.NotDispatched = "no" }, 0, false},
		"light, of others":            {[]func(*batchv1.Job){light, func(j *batchv1.Job) { j.Spec.ManagedBy = nil }}, nil, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			job := aJob("train")
			for _, change := range row.job {
				change(job)
			}
			hub := &hubReader{answer: func(into *batchv1.Job) error { *into = *aJob("train"); return nil }}
			s := &dispatch.Snapshot{Job: job, Key: jobKey}
			if row.world != nil {
				row.world(s)
			}
			seen := seenSpec{generation: -1}
			err := newWholeJobs(nil, hub, testingclock.NewFakeClock(noon), nil).open(jobKey).refresh(t.Context(), s, &seen, row.edited)
			wasRead := seen.of(s.Job)
			if err != nil || hub.reads != row.reads || wasRead != (row.reads > 0) || wasRead && mirror.Light(s.Job) {
				t.Errorf("%d reads, want %d; seen %+v, %v", hub.reads, row.reads, seen, err)
			}
		})
	}
}

// TestFewJobsAreReadAtATime has Jobs of two namespaces looked at while the hub doesn't answer:
// those of one leave room for the other's, and those for which there is no memory don't wait for
// one.
func TestFewJobsAreReadAtATime(t *testing.T) {
	answers := make(chan struct{})
	hub := &hubReader{answer: func(into *batchv1.Job) error { <-answers; *into = *aJob("train"); return nil }}
	whole := newWholeJobs(nil, hub, testingclock.NewFakeClock(noon), func(types.UID) int64 { return wholeOfNamespace / 4 })
	read := func(namespace string) error {
		a := whole.open(types.NamespacedName{Namespace: namespace, Name: "train"})
		defer a.release()
		_, err := a.readWhole(t.Context(), "")
		return err
	}
	results := make(chan error, 100)
	for range 100 {
		go func() { results <- read("greedy") }()
	}
	for range 100 - 4 {
		if err := <-results; !errors.Is(err, errNoMemory) {
			t.Errorf("got %v", err)
		}
	}
	go func() { results <- read("other") }()
	for range 4 + 1 {
		answers <- struct{}{}
	}
	for range 4 + 1 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if len(whole.namespaces) > 0 || whole.held != 0 {
		t.Errorf("memory stays taken: %d, %v", whole.held, whole.namespaces)
	}
}

// TestAKnownSpecIsReadWithTypes: only what isn't known of a Job is worth its JSON.
func TestAKnownSpecIsReadWithTypes(t *testing.T) {
	full := aJob("train")
	full.Generation = 2
	typed := interceptor.NewClient(nil, interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
			job, ok := into.(*batchv1.Job)
			if !ok {
				return errors.New("as JSON")
			}
			full.DeepCopyInto(job)
			return nil
		},
	})
	for generation, want := range map[int64]error{2: nil, 1: errStale} {
		light := full.DeepCopy()
		light.Generation = generation
		mirror.Lighten(light)
		s := &dispatch.Snapshot{Job: light, Key: jobKey}
		seen := seenSpec{generation: generation}
		err := newWholeJobs(nil, typed, testingclock.NewFakeClock(noon), nil).open(jobKey).refresh(t.Context(), s, &seen, false)
		if !errors.Is(err, want) || !seen.of(light) || want == nil && mirror.Light(s.Job) {
			t.Errorf("generation %d: %+v, %v; light: %t", generation, seen, err, mirror.Light(s.Job))
		}
	}
}

// tinyJob has a template of so many elements, each of 14 bytes of protobuf, and much more in
// memory.
func tinyJob(elements int) *batchv1.Job {
	job := aJob("train")
	term := corev1.PodAffinityTerm{TopologyKey: "a", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": ""}}}
	job.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: slices.Repeat([]corev1.PodAffinityTerm{term}, elements),
	}}
	return job
}

// TestTheWeightOfAJobIsEnough compares it with what a Job takes that is read whole.
func TestTheWeightOfAJobIsEnough(t *testing.T) {
	long := aJob("train")
	long.Spec.Template.Spec.Containers[0].Args = []string{strings.Repeat("x", 1_000_000)}
	env := aJob("train")
	for i := range 50_000 {
		env.Spec.Template.Spec.Containers[0].Env = append(env.Spec.Template.Spec.Containers[0].Env, corev1.EnvVar{Name: fmt.Sprint("a", i)})
	}
	managed := aJob("train")
	var fields strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&fields, `,"k:{\"n\":\"%d\"}":{".":{}}`, i)
	}
	managed.ManagedFields = []metav1.ManagedFieldsEntry{{FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1("{" + fields.String()[1:] + "}")}}
	for name, job := range map[string]*batchv1.Job{"tiny elements": tinyJob(50_000), "one text": long, "variables": env, "managed fields": managed} {
		data := inJSON(t, job)
		weight, before := packed.WeightOf(job), heap().HeapAlloc
		whole, err := mirror.NewWhole(data)
		if err != nil {
			t.Fatal(err)
		}
		took := int64(heap().HeapAlloc) - int64(before) //nolint:gosec // no heap has 2^63 bytes
		runtime.KeepAlive(whole)
		runtime.KeepAlive(data)
		runtime.KeepAlive(job)
		t.Logf("%s: %d KiB of protobuf take %d KiB, and weigh %d KiB", name, job.Size()>>10, took>>10, weight>>10)
		if took > weight {
			t.Errorf("%s: it takes %d bytes, and weighs %d", name, took, weight)
		}
	}
}

func inJSON(t *testing.T, job *batchv1.Job) []byte {
	t.Helper()
	sent := *job
	sent.SetGroupVersionKind(batchv1.SchemeGroupVersion.WithKind("Job"))
	data, err := json.Marshal(&sent)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestLargeJobsReadWholeTakeLittleMemory has each of eight tenants read several Jobs at once that
// are made of tiny elements. All that have been read are held until each has an answer.
func TestLargeJobsReadWholeTakeLittleMemory(t *testing.T) {
	for name, row := range map[string]struct {
		elements, least int
		most            int64
	}{
		"of 1.4 MB, one by one": {100_000, 1, 56 << 20},
		"of 150 KB":             {11_000, 1, wholeBytes},
		"of 50 KB":              {3_700, 2, wholeBytes},
		"of 10 KB":              {740, 8, wholeBytes},
	} {
		t.Run(name, func(t *testing.T) {
			job := tinyJob(row.elements)
			data, weight := inJSON(t, job), packed.WeightOf(job)
			hub := interceptor.NewClient(nil, interceptor.Funcs{
				Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
					return json.Unmarshal(data, into)
				},
			})
			jobs := newWholeJobs(nil, hub, testingclock.NewFakeClock(noon), func(types.UID) int64 { return weight })
			before := heap().HeapAlloc
			var mu sync.Mutex
			var held []*mirror.Whole
			var wait sync.WaitGroup
			for tenant := range 8 {
				for range 4 {
					wait.Go(func() {
						whole, err := jobs.open(types.NamespacedName{Namespace: fmt.Sprint("tenant-", tenant), Name: "train"}).readWhole(t.Context(), "")
						mu.Lock()
						defer mu.Unlock()
						switch {
						case err == nil:
							held = append(held, whole)
						case !errors.Is(err, errNoMemory):
							t.Error(err)
						}
					})
				}
			}
			wait.Wait()
			took := int64(heap().HeapAlloc) - int64(before) //nolint:gosec // no heap has 2^63 bytes
			t.Logf("%d Jobs of %d KiB of protobuf take %d KiB", len(held), job.Size()>>10, took>>10)
			if took > row.most || len(held) < row.least {
				t.Errorf("%d Jobs take %d bytes, want %d Jobs at least, and %d bytes at most", len(held), took, row.least, row.most)
			}
			runtime.KeepAlive(held)
		})
	}
}

// TestALightJobThatCannotBeReadWaits: nothing is decided without its template, and the hub is asked
// less and less often.
func TestALightJobThatCannotBeReadWaits(t *testing.T) {
	w := newWorld(t)
	w.lightly = mirror.Lighten
	w.submits(aJob("train"))
	tries := 0
	w.refuses = func(sent write) error {
		if sent.server == "hub" {
			tries++
			return apierrors.NewTimeoutError("slow", 1)
		}
		return nil
	}
	w.step(time.Minute)
	if mirrors := len(w.worker("a").api.jobs) + len(w.worker("b").api.jobs); tries < 5 || tries > 15 || mirrors > 0 {
		t.Errorf("%d tries in a minute, %d mirrors", tries, mirrors)
	}
	w.refuses = nil
	w.step(time.Minute)
	if mirrors := len(w.worker("a").api.jobs); mirrors != 1 {
		t.Errorf("%d mirrors, want 1", mirrors)
	}
}

// TestWhatIsCarriedSharesTheMemory with the Jobs that are read whole, and is paced as looks at
// them.
func TestWhatIsCarriedSharesTheMemory(t *testing.T) {
	clock := testingclock.NewFakeClock(noon)
	whole := newWholeJobs(nil, nil, clock, nil)
	var turns []*allowance
	open := func(namespace string) *allowance {
		turns = append(turns, whole.open(types.NamespacedName{Namespace: namespace, Name: "train"}))
		return turns[len(turns)-1]
	}
	reserve := func(a *allowance, want error) func(used int64) {
		t.Helper()
		release, err := a.Reserve(wholeOfNamespace)
		if !errors.Is(err, want) {
			t.Errorf("%s got %v, want %v", a.key, err, want)
		}
		return release
	}
	first := open("greedy")
	if !first.reserve(wholeOfNamespace / 2) { // its Job is large, too
		t.Fatal("no memory for the only Job")
	}
	release := reserve(first, nil)
	reserve(open("greedy"), errNoMemory)
	reserve(open("third"), errNoMemory)
	release(0)
	if first.bytes != wholeOfNamespace/2 {
		t.Errorf("the turn holds %d bytes, want %d", first.bytes, wholeOfNamespace/2)
	}
	reserve(open("third"), nil)(0)
	first.release()
	taken := 0
	for range 60 {
		for a := open("greedy"); ; taken++ {
			release, err := a.Reserve(wholeOfNamespace)
			if err != nil {
				break
			}
			release(lookBytes)
		}
		clock.Step(time.Second)
	}
	reserve(open("other"), nil)(0)
	if want := 60 + 11; taken > want || taken < 60 {
		t.Errorf("%d in a minute, want %d", taken, want)
	}
	if whole.held != 0 || len(whole.namespaces) > 0 {
		t.Errorf("memory stays taken: %d, %v", whole.held, whole.namespaces)
	}
}
