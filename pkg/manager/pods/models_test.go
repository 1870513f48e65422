package pods

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/mirror"
)

// hubReader answers reads of Jobs.
type hubReader struct {
	client.Reader
	answer func(types.NamespacedName, *batchv1.Job) error
	reads  int
}

func (r *hubReader) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	r.reads++
	job, is := into.(*batchv1.Job)
	if !is {
		return fmt.Errorf("a %T is read", into)
	}
	return r.answer(key, job)
}

func (r *hubReader) large(key types.NamespacedName, into *batchv1.Job) error {
	*into = *largeJob(key)
	return nil
}

const largeBytes = 1_400_000

// largeJob is a Job as the hub has it.
func largeJob(key types.NamespacedName) *batchv1.Job {
	job := testJob()
	job.Namespace, job.Name, job.UID = key.Namespace, key.Name, types.UID(key.String())
	job.Spec.Template.Spec.Containers[0].Args = []string{strings.Repeat("a", largeBytes)}
	return job
}

// heldJob is one as the cache has it.
func heldJob(namespace string, i int) *batchv1.Job {
	job := testJob()
	job.Namespace, job.Name = namespace, fmt.Sprintf("j-%02d", i)
	job.UID = types.UID(client.ObjectKeyFromObject(job).String())
	mirror.Lighten(job)
	return job
}

// While a tenant's Job is being read, nobody waits: others' Jobs are read, and his are asked for
// again.
func TestAReadOfALargeJobHoldsUpNobody(t *testing.T) {
	reader := &hubReader{}
	m := newModels(reader)
	get := func(job *batchv1.Job) (wait time.Duration) {
		model, wait, err := m.get(t.Context(), job, testNow)
		if err != nil || (model == nil) != (wait > 0) {
			t.Errorf("model %v, wait %s, error %v", model, wait, err)
		}
		return wait
	}
	reader.answer = func(key types.NamespacedName, into *batchv1.Job) error {
		if key.Namespace == "evil" && reader.reads == 1 { // the others come meanwhile
			if !m.mu.TryLock() {
				t.Fatal("a read holds up all")
			}
			m.mu.Unlock()
			if get(heldJob("evil", 0)) == 0 || get(heldJob("evil", 1)) == 0 {
				t.Error("two Jobs of a namespace are read at a time")
			}
			if wait := get(heldJob("team", 0)); wait != 0 {
				t.Errorf("another namespace waits for %s", wait)
			}
		}
		return reader.large(key, into)
	}
	if wait := get(heldJob("evil", 0)); wait != 0 || reader.reads != 2 {
		t.Errorf("waits for %s, after %d reads", wait, reader.reads)
	}
	if len(m.reading) != 0 {
		t.Errorf("%v are being read", m.reading)
	}
}

// However many namespaces there are, few Jobs are read at a time.
func TestFewJobsAreReadAtATime(t *testing.T) {
	reader := &hubReader{}
	m := newModels(reader)
	reader.answer = func(key types.NamespacedName, into *batchv1.Job) error {
		now := reader.reads
		if now > maxReads {
			t.Fatalf("%d Jobs are read at a time", now)
		}
		if _, wait, err := m.get(t.Context(), heldJob(fmt.Sprint("evil-", now), 0), testNow); err != nil || (now == maxReads) != (wait > 0) {
			t.Errorf("the next waits for %s, error %v", wait, err)
		}
		return reader.large(key, into)
	}
	if _, wait, err := m.get(t.Context(), heldJob("evil", 0), testNow); wait > 0 || err != nil {
		t.Errorf("waits for %s, error %v", wait, err)
	}
}

// A tenant with more large Jobs than models are kept has them read at a pace, which delays no other
// namespace.
func TestLargeJobsAreReadAtAPace(t *testing.T) {
	reader := &hubReader{}
	reader.answer = reader.large
	m := newModels(reader)
	now := testNow
	of := func(job *batchv1.Job) (wait time.Duration) {
		_, wait, err := m.get(t.Context(), job, now)
		if err != nil {
			t.Fatal(err)
		}
		return wait
	}
	const seconds = 60
	for range seconds {
		for i := range maxModels + 1 {
			of(heldJob("evil", i))
		}
		now = now.Add(time.Second)
	}
	if most := (seconds+int(readAhead.Seconds()))*readBytes/largeBytes + 1; reader.reads > most {
		t.Errorf("%d reads in %d s, want %d at most", reader.reads, seconds, most)
	}
	next := maxModels + 1
	for of(heldJob("evil", next)) == 0 {
		next++
	}
	if wait := of(heldJob("team", 0)); wait > 0 {
		t.Errorf("another namespace waits for %s", wait)
	}
	if now = now.Add(of(heldJob("evil", next))); of(heldJob("evil", next)) > 0 {
		t.Error("it isn't read after its wait")
	}
	now = now.Add(time.Hour)
	if of(heldJob("team", 1)); len(m.until) != 1 {
		t.Errorf("%d namespaces are kept", len(m.until))
	}
}

// A model is read once. Of a Job that was replaced, or can't be read, there is none.
func TestModels(t *testing.T) {
	reader := &hubReader{}
	m := newModels(reader)
	for range 2 {
		if model, _, err := m.get(t.Context(), testJob(), testNow); model == nil || err != nil || reader.reads != 0 {
			t.Errorf("the cache has it: %v, error %v, %d reads", model, err, reader.reads)
		}
	}
	failure := errors.New("no answer")
	for name, row := range map[string]struct {
		answer func(types.NamespacedName, *batchv1.Job) error
		want   error
	}{
		"gone": {func(key types.NamespacedName, _ *batchv1.Job) error {
			return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
		}, errAnotherJob},
		"replaced": {func(_ types.NamespacedName, job *batchv1.Job) error { job.UID = "another"; return nil }, errAnotherJob},
		"failed":   {func(types.NamespacedName, *batchv1.Job) error { return failure }, failure},
	} {
		reader.answer = row.answer
		if model, wait, err := m.get(t.Context(), heldJob("team", 0), testNow); model != nil || wait != 0 || !errors.Is(err, row.want) {
			t.Errorf("%s: model %v, wait %s, error %v", name, model, wait, err)
		}
	}
	reader.answer, reader.reads = reader.large, 0
	for range 2 {
		if model, _, err := m.get(t.Context(), heldJob("team", 0), testNow); model == nil || err != nil || reader.reads != 1 {
			t.Errorf("model %v, error %v, %d reads", model, err, reader.reads)
		}
	}
}
