package pods

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/util/decoded"
)

const (
	// maxModels is how many models are kept: with maxModel, 4 MiB.
	maxModels = 64
	// maxReads is how many Jobs are read whole at a time: one may take a hundred times its size then.
	maxReads = 2
	// readAgain is when a Job is asked for again that can't be read as others are.
	readAgain = 250 * time.Millisecond
	// Of each namespace, so many bytes of Jobs are read in a second, and of some time in advance. Jobs
	// count as they're decoded.
	readBytes = 2 << 20
	readAhead = 30 * time.Second
)

// errAnotherJob: there is none with this UID any more.
var errAnotherJob = errors.New("it's another Job by now")

// models are what the shadows of Jobs are made of. A Job whose Pod template the cache hasn't is
// large, or has ended: it's read from the hub, and the models of the last ones are kept. Of one
// namespace, one Job, or large Pod, is read at a time, and so many bytes in a second. Nobody waits
// for a read of another: who can't read now is told when to ask again.
type models struct {
	live client.Reader
	kept *lru.Cache // by UID

	mu sync.Mutex
	// reading are the namespaces of which a Job is being read.
	reading map[string]bool
	// until is until when what was read of a namespace is as much as may be.
	until map[string]time.Time
}

func newModels(live client.Reader) *models {
	return &models{live: live, kept: lru.New(maxModels), reading: map[string]bool{}, until: map[string]time.Time{}}
}

// get returns the model of a hub Job; nil: it's too much. If the Job can't be read now, it returns
// after which time it may be.
func (m *models) get(ctx context.Context, job *batchv1.Job, now time.Time) (model *batchv1.Job, wait time.Duration, err error) {
	if !mirror.Light(job) {
		return modelOf(job), 0, nil
	}
	if known, is := m.kept.Get(job.UID); is {
		model, _ = known.(*batchv1.Job)
		return model, 0, nil
	}
	live := &batchv1.Job{}
	wait, err = m.inTurn(job.Namespace, now, func() (int64, error) {
		err := m.live.Get(ctx, client.ObjectKeyFromObject(job), live)
		return decoded.Size(live), err
	})
	switch {
	case wait > 0, client.IgnoreNotFound(err) != nil:
		return nil, wait, err
	case err != nil, live.UID != job.UID:
		return nil, 0, errAnotherJob
	}
	model = modelOf(live)
	m.kept.Add(job.UID, model)
	return model, 0, nil
}

// inTurn reads what is large of a namespace, if that can be read now; else it returns after which
// time it may be.
func (m *models) inTurn(namespace string, now time.Time, read func() (bytes int64, err error)) (wait time.Duration, err error) {
	if wait := m.begin(namespace, now); wait > 0 {
		return wait, nil
	}
	var bytes int64
	defer func() { m.end(namespace, bytes, now) }()
	bytes, err = read()
	return 0, err
}

// begin returns how long no Job of a namespace can be read; zero: one is being read from now on.
func (m *models) begin(namespace string, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ahead := m.until[namespace].Sub(now); ahead > readAhead {
		return max(ahead-readAhead, readAgain)
	}
	if m.reading[namespace] || len(m.reading) >= maxReads {
		return readAgain
	}
	m.reading[namespace] = true
	return 0
}

// end counts what was read.
func (m *models) end(namespace string, bytes int64, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.reading, namespace)
	maps.DeleteFunc(m.until, func(_ string, until time.Time) bool { return until.Before(now) })
	from := m.until[namespace]
	if from.Before(now) {
		from = now
	}
	m.until[namespace] = from.Add(time.Duration(float64(bytes) / readBytes * float64(time.Second)))
}
