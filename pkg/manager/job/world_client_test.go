package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/manager/group"
	"github.com/jobferry/jobferry/pkg/mirror"
)

var errKilled = errors.New("the process was killed")

// write is one write of the manager.
type write struct {
	server string // the hub, or a worker
	verb   string // create, patch, status or delete
	object client.Object
	words  string
}

// isOfJob reports whether the write is one to a Job.
func (w write) isOfJob() bool {
	_, ok := typedOf(w.object)
	return ok
}

// kill says at which of its writes the manager is killed; zero: at none.
type kill struct {
	at int
	// done: the write arrives, and its answer doesn't.
	done bool
	// conflicts: the process isn't killed, but somebody else changes the Job just before.
	conflicts bool
}

// client is the manager's client of one cluster.
func (w *world) client(s *apiServer) client.Client {
	return interceptor.NewClient(s.others, interceptor.Funcs{
		Get:  w.get(s),
		List: w.list(s),
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.CreateOption) error {
			return w.send(ctx, s, write{s.name, "create", object, createWords(object)}, func() error {
				if job, ok := typedOf(object); ok {
					return s.createJob(object, job, o...)
				}
				return c.Create(ctx, object, o...)
			})
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, p client.Patch, o ...client.PatchOption) error {
			return w.send(ctx, s, write{s.name, "patch", object, s.patchWords(object, p)}, func() error {
				if _, ok := typedOf(object); !ok {
					return c.Patch(ctx, object, p, o...)
				}
				return s.patchJob(object, p, false)
			})
		},
		SubResourcePatch: func(ctx context.Context, _ client.Client, _ string, object client.Object, p client.Patch, _ ...client.SubResourcePatchOption) error {
			verb := "status"
			if s.places(object, patchBytes(object, p)) {
				verb = "patch"
			}
			return w.send(ctx, s, write{s.name, verb, object, strings.Replace(s.patchWords(object, p), "status", verb, 1)}, func() error {
				return s.patchJob(object, p, true)
			})
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.DeleteOption) error {
			var options client.DeleteOptions
			options.ApplyOptions(o)
			return w.send(ctx, s, write{s.name, "delete", object, deleteWords(object, &options)}, func() error {
				if job, ok := object.(*batchv1.Job); ok {
					return s.delete(keyOf(job), options)
				}
				return c.Delete(ctx, object, o...)
			})
		},
	})
}

type (
	getFunc  = func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error
	listFunc = func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error
)

func (w *world) get(s *apiServer) getFunc {
	return func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, o ...client.GetOption) error {
		if err := w.read(ctx, s, "get"); err != nil {
			return err
		}
		if set, ok := object.(*group.JobSet); ok {
			if sent := w.jobSets[key.Name]; sent != "" {
				return set.UnmarshalJSON([]byte(sent))
			}
			return apierrors.NewNotFound(schema.GroupResource{Resource: "jobsets"}, key.Name)
		}
		if _, ok := typedOf(object); ok {
			job, err := s.job(key)
			if err == nil {
				s.answer(object, job)
			}
			return err
		}
		return c.Get(ctx, key, object, o...)
	}
}

func (w *world) list(s *apiServer) listFunc {
	return func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
		if err := w.read(ctx, s, "list"); err != nil {
			return err
		}
		if names, ok := list.(*metav1.PartialObjectMetadataList); ok && names.Kind == "JobList" {
			for _, key := range s.jobs.keys() {
				names.Items = append(names.Items, metav1.PartialObjectMetadata{ObjectMeta: *s.jobs[key].ObjectMeta.DeepCopy()})
			}
			names.ResourceVersion = fmt.Sprint(s.version)
			return nil
		}
		return c.List(ctx, list, withoutFields(o)...)
	}
}

// withoutFields drops the field selectors: the fake client has no index for them.
func withoutFields(options []client.ListOption) []client.ListOption {
	return slices.DeleteFunc(slices.Clone(options), func(o client.ListOption) bool {
		_, ok := o.(client.MatchingFieldsSelector)
		return ok
	})
}

func patchBytes(object client.Object, p client.Patch) []byte {
	data, err := p.Data(object)
	if err != nil {
		panic(err) // raw patches only
	}
	return data
}

// reach fails when the manager can't talk to a cluster. A reconcile talks to a worker only within
// the worker's share, and holds the answers.
func (w *world) reach(ctx context.Context, s *apiServer) error {
	if w.killed {
		return errKilled
	}
	if w.workers[s.name] != nil && w.reconciles && (!w.limiter.isBusy(s.name) || ctx.Value(heldIn(s.name)) == nil) {
		w.fail("a request to worker %s without a place for it, or whose answer isn't held", s.name)
	}
	if worker := w.workers[s.name]; worker != nil && worker.isAway() {
		return clusters.ErrNotConnected
	}
	return nil
}

func (w *world) read(ctx context.Context, s *apiServer, verb string) error {
	if err := w.reach(ctx, s); err != nil {
		return err
	}
	if w.refuses == nil {
		return nil
	}
	return w.refuses(write{server: s.name, verb: verb})
}

// send is the way of every write of the manager.
func (w *world) send(ctx context.Context, s *apiServer, sent write, do func() error) error {
	if err := w.reach(ctx, s); err != nil {
		return err
	}
	if w.refuses != nil {
		if err := w.refuses(sent); err != nil {
			w.logf("manager", "%s: %s: %s", sent.server, sent.words, reasonOf(err))
			return err
		}
	}
	w.writes++
	due := w.writes == w.kill.at
	switch {
	case due && w.kill.conflicts:
		s.touch(sent)
		w.logf("manager", "%s: %s: Conflict", sent.server, sent.words)
		return conflict(sent.object.GetName())
	case due && !w.kill.done:
		w.killed = true
		return errKilled
	}
	before := w.running(s.name)
	err := do()
	w.logf("manager", "%s: %s%s", sent.server, sent.words, failure(err))
	if w.answers != nil {
		w.answers(sent)
	}
	if !before && w.running(s.name) {
		w.checkRunsOnce(s.name)
	}
	if due {
		w.killed = true
		return errKilled
	}
	return err
}

// touch has somebody else change a Job.
func (s *apiServer) touch(sent write) {
	job, ok := typedOf(sent.object)
	if !ok || s.jobs[keyOf(job)] == nil {
		return
	}
	s.store(s.jobs[keyOf(job)].DeepCopy())
}

// running reports whether the Job runs in a worker.
func (w *world) running(worker string) bool {
	v := w.workers[worker]
	return v != nil && v.runs(jobKey)
}

// checkRunsOnce holds that a Job that the manager has just let run in one worker runs in no other
// one that it can reach.
func (w *world) checkRunsOnce(in string) {
	for name, v := range w.workers {
		if !w.mayRunTwice && name != in && !v.isAway() && v.runs(jobKey) && !isPart(v.api.jobs[jobKey]) {
			w.fail("the Job runs in %s, while it runs in %s", in, name) // of parts, see checkIndexes
		}
	}
}

func isPart(m *batchv1.Job) bool {
	_, part := m.Annotations[v1alpha1.AnnotationIndexes]
	return part
}

func (v *fakeWorker) runs(key types.NamespacedName) bool {
	m := v.api.jobs[key]
	return m != nil && m.DeletionTimestamp == nil && !mirror.Suspended(m) && !mirror.Finished(m) && mirror.HubUID(m) != ""
}
