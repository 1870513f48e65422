package indexes

import (
	"slices"
	"strconv"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/mirror/intervals"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func second(n int) time.Time { return epoch.Add(time.Duration(n) * time.Second) }

// ran records a Pod from one second to another.
func ran(r *Record, cluster string, index, from, to int, phase corev1.PodPhase) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Finalizers: []string{batchv1.JobTrackingFinalizer},
		UID:        types.UID(strconv.Itoa(index) + "-" + strconv.Itoa(from)), Annotations: map[string]string{batchv1.JobCompletionIndexAnnotation: strconv.Itoa(index)},
	}}
	r.Saw(cluster, pod, second(from))
	pod.Status.Phase = phase
	r.Saw(cluster, pod, second(to))
	r.Gone(cluster, pod, second(to+100))
}

// stops records a Pod that succeeds at one second, and is asked to stop at another.
func stops(r *Record, cluster string, index, to, deleted int) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Finalizers: []string{batchv1.JobTrackingFinalizer},
		UID:        types.UID(strconv.Itoa(index) + "-stops"), Annotations: map[string]string{batchv1.JobCompletionIndexAnnotation: strconv.Itoa(index)},
	}}
	r.Saw(cluster, pod, second(0))
	for at := range to + deleted {
		if at >= deleted {
			pod.DeletionTimestamp = &metav1.Time{Time: second(deleted)}
		}
		if at >= to {
			pod.Status.Phase = corev1.PodSucceeded
		}
		r.Saw(cluster, pod, second(at))
	}
}

func TestCount(t *testing.T) {
	const ok, failed = corev1.PodSucceeded, corev1.PodFailed
	for name, c := range map[string]struct {
		tell  func(*Record)
		exact bool
		want  func(Counts) bool
	}{
		"each once": {
			func(r *Record) { ran(r, "a", 0, 0, 9, ok); ran(r, "b", 1, 0, 9, ok) },
			true, func(c Counts) bool { return c.Once == 2 && c.Pods == 2 && c.Runs[1] == 2 },
		},
		"one continues elsewhere": {
			func(r *Record) { ran(r, "a", 0, 0, 9, failed); ran(r, "b", 0, 9, 10, ok); ran(r, "b", 1, 0, 9, ok) },
			true, func(c Counts) bool { return c.Once == 2 && c.Pods == 3 && c.Runs[2] == 1 },
		},
		"one never completes": {
			func(r *Record) { ran(r, "a", 0, 0, 9, ok); ran(r, "a", 1, 0, 9, failed) },
			false, func(c Counts) bool { return c.Never.String() == "1" },
		},
		"one has no Pod": {
			func(r *Record) { ran(r, "a", 1, 0, 9, ok) },
			false, func(c Counts) bool { return c.Never.String() == "0" && c.Runs[0] == 1 },
		},
		"one was stopped, and succeeds in the end": {
			func(r *Record) { stops(r, "a", 0, 9, 8); ran(r, "b", 0, 20, 29, ok); ran(r, "b", 1, 0, 9, ok) },
			true, func(c Counts) bool { return c.Once == 2 && c.Runs[2] == 1 },
		},
		"one is stopped just as it succeeds": {
			func(r *Record) { stops(r, "a", 0, 9, 9); ran(r, "b", 0, 20, 29, ok); ran(r, "b", 1, 0, 9, ok) },
			true, func(c Counts) bool { return c.Once == 2 },
		},
		"one that counts is deleted later": {
			func(r *Record) { stops(r, "a", 0, 9, 19); ran(r, "b", 0, 20, 29, ok); ran(r, "b", 1, 0, 9, ok) },
			false, func(c Counts) bool { return c.Again.String() == "0" },
		},
		"one completes twice": {
			func(r *Record) { ran(r, "a", 0, 0, 9, ok); ran(r, "b", 0, 9, 12, ok); ran(r, "b", 1, 0, 9, ok) },
			false, func(c Counts) bool {
				return c.Again.String() == "0" && c.Once == 1 && slices.Equal(c.Stories, []string{
					"index 0: in a from 00:00:00.000, succeeded at 00:00:09.000; in b from 00:00:09.000, succeeded at 00:00:12.000"})
			},
		},
		"two at once": {
			func(r *Record) { ran(r, "a", 0, 0, 9, failed); ran(r, "b", 0, 8, 12, ok); ran(r, "b", 1, 0, 9, ok) },
			false, func(c Counts) bool { return c.Together.String() == "0" && c.Once == 2 },
		},
		"a lost worker completes one too": {
			func(r *Record) {
				r.Lose("a", nil)
				ran(r, "a", 0, 0, 9, ok)
				ran(r, "b", 0, 20, 30, ok)
				ran(r, "b", 1, 0, 9, ok)
			},
			true, func(c Counts) bool { return c.Once == 1 && c.InLost == 1 },
		},
		"a lost worker had completed it, as the hub knew": {
			func(r *Record) {
				r.Lose("a", intervals.Of(0))
				ran(r, "a", 0, 0, 9, ok)
				ran(r, "b", 0, 20, 30, ok)
				ran(r, "b", 1, 0, 9, ok)
			},
			false, func(c Counts) bool { return c.Again.String() == "0" },
		},
		"an index of another Job": {
			func(r *Record) { ran(r, "a", 0, 0, 9, ok); ran(r, "a", 1, 0, 9, ok); ran(r, "a", 2, 0, 9, ok) },
			false, func(c Counts) bool { return c.Strange == 1 },
		},
	} {
		r := NewRecord()
		c.tell(r)
		if got := r.Count(2); got.Exact() != c.exact || !c.want(got) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// A Pod that goes away before it has ended has run until then.
func TestGoneWithoutAnEnd(t *testing.T) {
	r := NewRecord()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u", Annotations: map[string]string{batchv1.JobCompletionIndexAnnotation: "0"}}}
	r.Saw("a", pod, second(0))
	r.Gone("a", pod, second(5))
	ran(r, "b", 0, 4, 9, corev1.PodSucceeded)
	if got := r.Count(1); got.Together.String() != "0" {
		t.Errorf("got %+v", got)
	}
}
