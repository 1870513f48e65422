package indexes

import (
	"strconv"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/mirror/intervals"
)

// Record is what was seen of the Pods of one Job. Its methods may be called by several goroutines.
type Record struct {
	mu   sync.Mutex
	pods map[string]*course // by cluster and UID
	// shown are the indexes that the hub had shown as completed when it lost a cluster.
	shown map[string]intervals.Set
}

// course is the way of one Pod.
type course struct {
	cluster     string
	index       int
	from, to    time.Time // to is zero while it may run
	ended, gone bool
	// succeeded: it was not being deleted by then. What a Pod that its Job controller stops does in
	// the end doesn't count.
	succeeded bool
	// crossed: its deletion may have crossed its end, so that it isn't counted.
	crossed bool
}

// crossing is how long after a Pod's end its Job controller may not have known of it, on a machine
// that is busy.
const crossing = 5 * time.Second

// NewRecord returns an empty Record.
func NewRecord() *Record {
	return &Record{pods: map[string]*course{}, shown: map[string]intervals.Set{}}
}

// Saw records a Pod as it was at a time.
func (r *Record) Saw(cluster string, pod *corev1.Pod, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.course(cluster, pod, at)
	isGivenUp := pod.DeletionTimestamp != nil
	if phase := pod.Status.Phase; !c.ended && (phase == corev1.PodSucceeded || phase == corev1.PodFailed) {
		c.ended, c.succeeded, c.to = true, phase == corev1.PodSucceeded && !isGivenUp, at
	}
	if pod.DeletionTimestamp != nil && c.succeeded && at.Sub(c.to) < crossing {
		c.crossed = true
	}
}

// Gone records that a Pod doesn't exist any more, and was last like this.
func (r *Record) Gone(cluster string, pod *corev1.Pod, at time.Time) {
	r.Saw(cluster, pod, at)
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.course(cluster, pod, at)
	if c.gone = true; !c.ended {
		c.to = at
	}
}

func (r *Record) course(cluster string, pod *corev1.Pod, at time.Time) *course {
	key := cluster + "/" + string(pod.UID)
	c := r.pods[key]
	if c == nil {
		index, err := strconv.Atoi(pod.Annotations[batchv1.JobCompletionIndexAnnotation])
		if err != nil {
			index = -1
		}
		c = &course{cluster: cluster, index: index, from: at}
		r.pods[key] = c
	}
	return c
}

// Lose records that the hub has lost a cluster, and what it had shown as completed by then.
func (r *Record) Lose(cluster string, shown intervals.Set) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shown[cluster] = shown
}
