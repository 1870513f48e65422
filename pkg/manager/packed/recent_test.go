package packed

import (
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// forgetRecent leaves no Job recent.
func forgetRecent() {
	recently.mu.Lock()
	jobs := recently.jobs
	recently.jobs, recently.kib = nil, 0
	recently.mu.Unlock()
	for _, job := range jobs {
		job.settle()
	}
}

// fill has so many usual Jobs packed that no other one is recent.
func fill(t *testing.T) (jobs []*Job) {
	t.Helper()
	for i := range maxRecent / 4000 {
		jobs = append(jobs, pack(t, usual(i)))
	}
	return jobs
}

func TestRecentJobsAreShared(t *testing.T) {
	p := pack(t, usual(-1))
	first := p.Shared()
	if p.rest != "" || p.Shared() != first || p.Unpack() == first {
		t.Error("a Job that was packed a moment ago isn't shared, or is compressed already")
	}
	fill(t)
	if p.unpacked.Load() != nil || p.rest == "" {
		t.Fatal("a Job that isn't recent any more isn't compressed")
	}
	second := p.Shared()
	if second == first || p.Shared() != second || !equality.Semantic.DeepEqual(first, second) {
		t.Error("a Job that is read again isn't a recent one, or has changed")
	}
}

func TestReplacedJobsAreNotCompressed(t *testing.T) {
	gone, held, deleted := pack(t, usual(-1)), pack(t, usual(-2)), pack(t, usual(-3))
	h := Handler(&seen{})
	h.OnUpdate(gone, held)
	h.OnUpdate(held, held) // an informer's resync
	h.OnDelete(deleted)
	forgetRecent()
	if gone.rest != "" || deleted.rest != "" || held.rest == "" {
		t.Error("replaced Jobs were compressed, or one that wasn't replaced is not")
	}
	if gone.Shared().Name != usual(-1).Name {
		t.Error("a handler that is late finds no Job")
	}
}

// A tenant decides how large a Job becomes that takes few bytes.
func TestRecentJobsAreBounded(t *testing.T) {
	large := func(containers int) *Job {
		job := usual(-1)
		job.Spec.Template.Spec.Containers = make([]corev1.Container, containers)
		return pack(t, job)
	}
	job := large(5_000)
	if once := job.Shared(); job.unpacked.Load() != nil || job.Shared() == once {
		t.Error("a Job of some MiB is held unpacked")
	}
	for range 30 {
		large(900)
		recently.mu.Lock()
		total := 0
		for _, job := range recently.jobs {
			total += int(job.kib)
		}
		if total != recently.kib || total > maxRecent>>10 {
			t.Errorf("recent Jobs take %d KiB, counted as %d", total, recently.kib)
		}
		recently.mu.Unlock()
	}
}

func TestJobsAreReadWhileTheySettle(t *testing.T) {
	p := pack(t, usual(-1))
	var all sync.WaitGroup
	for _, read := range []func() *batchv1.Job{p.Shared, p.Unpack, p.Shared} {
		all.Go(func() {
			for range 200 {
				if read().Name != "job--1" {
					t.Error("the Job isn't there")
				}
			}
		})
	}
	for range 3 {
		fill(t)
	}
	all.Wait()
}
