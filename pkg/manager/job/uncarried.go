package job

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/jobferry/jobferry/pkg/manager/carry"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/util/pages"
)

// maxUncarried bounds what is looked for of one Job.
const maxUncarried = 8

// tellUncarried reports what the Pods of a mirror name, and what its worker lacks, once when the
// mirror has been created.
func (r *Reconciler) tellUncarried(ctx context.Context, t *turn, w worker) (done result) {
	named := carry.Uncarried(&t.Job.Spec.Template, w.View().Spec.Carry)
	for _, ref := range named[:min(len(named), maxUncarried)] {
		note := ""
		switch r.sightings.of(ctx, w, t.Key.Namespace, ref) {
		case lacking:
			note = ref.Lacking()
		case hidden:
			note = ref.Hidden()
		}
		if note != "" {
			done.add(r.tell(ctx, t, dispatch.NotCarried(w.Name(), note)))
		}
	}
	return done
}

// sighting says whether a worker has an object.
type sighting int

const (
	// unknown: the worker didn't answer.
	unknown sighting = iota
	there
	lacking
	// hidden: the hub's account may not read such objects there.
	hidden
)

// sightings remember which objects workers have, for the next Jobs that name them. The hub's
// account may read few kinds: those that it may not are asked for once in a long while.
type sightings struct {
	clock clock.PassiveClock

	mu   sync.Mutex
	seen map[sightedAt]seenUntil
}

// sightedAt is where an object is; without a name: all of its kind and namespace.
type sightedAt struct {
	worker string
	kind   carry.Kind
	name   types.NamespacedName
}

type seenUntil struct {
	sighting
	until time.Time
}

// rememberedFor is for how long a sighting holds. Who is told that something is missing creates it.
var rememberedFor = map[sighting]time.Duration{there: 5 * time.Minute, lacking: 10 * time.Second, hidden: 10 * time.Minute}

const (
	// maxSightings bounds what is remembered: when there is more, it starts again.
	maxSightings = 4096
	maxSighted   = 64 << 10
)

func newSightings(clock clock.PassiveClock) *sightings {
	return &sightings{clock: clock, seen: map[sightedAt]seenUntil{}}
}

// of says whether a worker has an object, as it was lately.
func (s *sightings) of(ctx context.Context, w worker, namespace string, ref carry.Ref) sighting {
	at := sightedAt{w.Name(), ref.Kind, types.NamespacedName{Namespace: namespace, Name: ref.Name}}
	all := at
	all.name.Name = ""
	for _, place := range []sightedAt{all, at} {
		if is := s.remembered(place); is != unknown {
			return is
		}
	}
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(string(ref.Kind)))
	err := w.Client().Get(pages.Within(ctx, maxSighted), at.name, object)
	switch {
	case err == nil:
		return s.remember(at, there)
	case apierrors.IsNotFound(err):
		return s.remember(at, lacking)
	case apierrors.IsForbidden(err):
		return s.remember(all, hidden)
	default:
		return unknown
	}
}

func (s *sightings) remembered(at sightedAt) sighting {
	s.mu.Lock()
	defer s.mu.Unlock()
	if is := s.seen[at]; s.clock.Now().Before(is.until) {
		return is.sighting
	}
	return unknown
}

func (s *sightings) remember(at sightedAt, is sighting) sighting {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.seen) >= maxSightings {
		clear(s.seen)
	}
	s.seen[at] = seenUntil{is, s.clock.Now().Add(rememberedFor[is])}
	return is
}
