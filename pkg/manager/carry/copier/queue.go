package copier

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/manager/carry"
	"github.com/jobferry/jobferry/pkg/util/text"
)

// maxName bounds a name in a message that no object can have.
const maxName = 80

// changed returns those of all references that are to be looked at, and takes over what was said of
// the others. They are all if a ServiceAccount has changed, as it may name other imagePullSecrets.
func (r *run) changed(all []carry.Ref) []carry.Ref {
	before, _ := r.Tracker.Get(r.place, r.copied.Mirror)
	if !slices.Equal(before.Kinds, r.copied.Kinds) {
		return all
	}
	var changed []carry.Ref
	for source, version := range before.Seen {
		said, has := before.said[source]
		if has && said.blocks() || newer(r.Tracker.version(source), version) {
			changed = append(changed, source.ref())
			continue
		}
		r.copied.Seen[source] = version
		if has {
			r.copied.said[source] = said
		}
	}
	if len(changed) == 0 || slices.ContainsFunc(changed, func(ref carry.Ref) bool { return ref.Kind == carry.ServiceAccount }) {
		clear(r.copied.Seen)
		clear(r.copied.said)
		return all
	}
	r.queue = r.unseen(slices.Clone(all))
	return append(r.queue, r.unseen(changed)...) // the others are a ServiceAccount's
}

// admit tracks references before they are read, unless they can't all be carried along. Then
// nothing more is, and the Job says so.
func (r *run) admit(refs []carry.Ref, all int) bool {
	blocked := ""
	sources := make([]Source, 0, len(refs))
	for _, ref := range refs {
		if !ref.IsPossible() {
			blocked = text.Clean(ref.String(), maxName) + " not found: no object can have that name"
		}
		sources = append(sources, r.sourceOf(ref))
	}
	switch {
	case all > carry.MaxReferences:
		blocked = fmt.Sprintf("it refers to more than %d objects that are to be carried along: refer to fewer", carry.MaxReferences)
	case blocked == "" && !r.Tracker.Track(r.place, sources...):
		blocked = fmt.Sprintf("the Jobs of namespace %s refer to so many objects that no more are carried along until some of these Jobs are gone", r.place.Namespace)
	}
	if blocked == "" {
		return true
	}
	r.copied.Blocked = []string{blocked}
	maps.DeleteFunc(r.copied.Seen, func(s Source, _ string) bool { return s.Kind != carry.ServiceAccount }) // it may name fewer
	clear(r.copied.said)
	r.Tracker.Record(r.place, r.copied)
	return false
}

// admitPullSecrets queues what a ServiceAccount refers to, before it's copied itself.
func (r *run) admitPullSecrets(account *corev1.ServiceAccount) bool {
	more := r.unseen(carry.Select(carry.PullSecrets(account), r.copied.Kinds))
	if !r.admit(more, len(r.copied.Seen)+len(r.queue)+len(more)) {
		return false
	}
	r.queue = append(r.queue, more...)
	return true
}

// unseen returns the references that are neither done nor in the queue.
func (r *run) unseen(refs []carry.Ref) []carry.Ref {
	return slices.DeleteFunc(refs, func(ref carry.Ref) bool {
		_, done := r.copied.Seen[r.sourceOf(ref)]
		return done || slices.ContainsFunc(r.queue, func(q carry.Ref) bool { return q.Kind == ref.Kind && q.Name == ref.Name })
	})
}

func (r *run) sourceOf(ref carry.Ref) Source {
	return Source{ref.Kind, types.NamespacedName{Namespace: r.place.Namespace, Name: ref.Name}}
}
