package job

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// TestStoriesOfLightJobs: a Job and its mirrors that are held without their Pod templates take the
// same way as others.
func TestStoriesOfLightJobs(t *testing.T) {
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			w := newWorld(t)
			w.lightJobs = true
			s.play(w)
			want, err := os.ReadFile(filepath.Join("testdata", s.name+".log"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), strings.Join(w.log, "\n")+"\n"); diff != "" {
				t.Errorf("a light Job takes another way (-want +got):\n%s", diff)
			}
		})
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
	untyped, ok := into.(*unstructured.Unstructured)
	if !ok {
		return errors.New("not with all fields")
	}
	var job batchv1.Job
	err := r.answer(&job)
	untyped.Object = toTree(&job)
	return err
}

// TestWhichJobsAreReadAgain: only light ones, and only when a decision may need the template.
func TestWhichJobsAreReadAgain(t *testing.T) {
	light := func(j *batchv1.Job) { mirror.Lighten(j) }
	placed := func(j *batchv1.Job) { j.Annotations = map[string]string{v1alpha1.AnnotationCluster: "a"} }
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
			got, err := newWholeJobs(hub).read(t.Context(), s, row.edited)
			if err != nil || hub.reads != row.reads || got != nil != (row.reads > 0) || got != nil && mirror.Light(got.Job) {
				t.Errorf("%d reads, want %d; got %v, %v", hub.reads, row.reads, got, err)
			}
		})
	}
}

// TestFewJobsAreReadAtATime has Jobs of two namespaces looked at while the hub doesn't answer:
// those of one leave room for the other's, and those for which there is no place don't wait for
// one.
func TestFewJobsAreReadAtATime(t *testing.T) {
	answers := make(chan struct{})
	hub := &hubReader{answer: func(into *batchv1.Job) error { <-answers; *into = *aJob("train"); return nil }}
	whole := newWholeJobs(hub)
	read := func(namespace string) error {
		job := aJob("train")
		mirror.Lighten(job)
		_, err := whole.read(t.Context(), &dispatch.Snapshot{Job: job, Key: types.NamespacedName{Namespace: namespace, Name: "train"}}, false)
		return err
	}
	results := make(chan error, 100)
	for range 100 {
		go func() { results <- read("greedy") }()
	}
	for range 100 - wholeOfOneAtATime {
		if err := <-results; !errors.Is(err, errNoPlace) {
			t.Errorf("got %v", err)
		}
	}
	go func() { results <- read("other") }()
	for range wholeOfOneAtATime + 1 {
		answers <- struct{}{}
	}
	for range wholeOfOneAtATime + 1 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if len(whole.namespaces) > 0 || whole.places != 0 {
		t.Errorf("places stay taken: %d, %v", whole.places, whole.namespaces)
	}
}

// TestALightJobThatCannotBeReadWaits: nothing is decided without its template, and the hub is asked
// less and less often.
func TestALightJobThatCannotBeReadWaits(t *testing.T) {
	w := newWorld(t)
	w.lightJobs = true
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
