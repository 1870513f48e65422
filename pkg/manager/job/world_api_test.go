package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

var jobsResource = schema.GroupResource{Group: "batch", Resource: "jobs"}

// jobs are the Jobs of one cluster's API server, by name.
type jobs map[types.NamespacedName]*batchv1.Job

// apiServer is the API server of one cluster, in memory. Its Jobs have UIDs, generations and
// resourceVersions, and writes to them have preconditions, as in a real one. A fake client keeps
// all other objects.
type apiServer struct {
	name    string
	clock   clock.PassiveClock
	jobs    jobs
	others  client.WithWatch
	version int // the resourceVersion of the last write
	created int // Jobs
	// whole has the specs of the Jobs that were sent with fields that the types don't know.
	whole map[types.NamespacedName]map[string]any
	// gone has the last states of Jobs.
	gone jobs
	// unknown are fields of a spec that this release doesn't have, switchedOff those that it drops all
	// the same.
	unknown, switchedOff []string
	// strips: a policy removes the mark of the origin from all Jobs that are written.
	strips bool
	// takes changes each Job that is stored, as a policy does.
	takes func(*batchv1.Job)
	// ttl is what a policy sets in all Jobs that are written; nil: nothing.
	ttl *int32
}

func newAPIServer(name string, clock clock.PassiveClock) *apiServer {
	// Deduced types are enough, and much faster to set up than the real ones.
	others := fake.NewClientBuilder().WithTypeConverters(managedfields.NewDeducedTypeConverter()).Build()
	return &apiServer{name: name, clock: clock, jobs: jobs{}, gone: jobs{}, others: others, whole: map[types.NamespacedName]map[string]any{}}
}

func (s *apiServer) job(key types.NamespacedName) (*batchv1.Job, error) {
	if job := s.jobs[key]; job != nil {
		return job.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(jobsResource, key.Name)
}

func (s *apiServer) create(job *batchv1.Job) error {
	key := keyOf(job)
	if s.jobs[key] != nil {
		return apierrors.NewAlreadyExists(jobsResource, key.Name)
	}
	s.created++
	job.UID = types.UID(fmt.Sprintf("%s-%d", s.name, s.created))
	job.CreationTimestamp, job.Generation = metav1.NewTime(s.clock.Now()), 1
	s.store(job)
	return nil
}

// store keeps a Job as the next version, unless nothing keeps it from being removed.
func (s *apiServer) store(job *batchv1.Job) {
	if s.takes != nil {
		s.takes(job)
	}
	if s.strips {
		delete(job.Labels, v1alpha1.LabelOrigin)
	}
	if s.ttl != nil {
		job.Spec.TTLSecondsAfterFinished = s.ttl
	}
	s.version++
	job.ResourceVersion = fmt.Sprint(s.version)
	s.jobs[keyOf(job)] = job.DeepCopy()
	if job.DeletionTimestamp != nil && len(job.Finalizers) == 0 {
		s.gone[keyOf(job)] = s.jobs[keyOf(job)]
		delete(s.jobs, keyOf(job))
		delete(s.whole, keyOf(job))
	}
}

// change has somebody else than the manager change a Job.
func (s *apiServer) change(key types.NamespacedName, change func(*batchv1.Job)) {
	job, err := s.job(key)
	if err != nil {
		panic(err) // a mistake of the test
	}
	change(job)
	s.replace(job)
}

// replace stores the next state of a Job, if it is another one.
func (s *apiServer) replace(job *batchv1.Job) {
	before := s.jobs[keyOf(job)]
	if !equality.Semantic.DeepEqual(job.Spec, before.Spec) {
		job.Generation++
	}
	if !equality.Semantic.DeepEqual(job, before) {
		s.store(job)
	}
}

// patch applies a JSON merge patch to a Job or to its status, and leaves the result in the object.
func (s *apiServer) patch(object *batchv1.Job, data []byte, status bool) error {
	before, err := s.job(keyOf(object))
	if err != nil {
		return err
	}
	if err := checkPreconditions(before, data); err != nil {
		return err
	}
	text, err := json.Marshal(before)
	if err == nil {
		text, err = jsonpatch.MergePatch(text, data)
	}
	after := &batchv1.Job{}
	if err := errors.Join(err, json.Unmarshal(text, after)); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if status {
		before.Status = after.Status
		before.Labels, before.Annotations, before.Finalizers = after.Labels, after.Annotations, after.Finalizers // as for all built-in kinds
		after = before
	} else {
		after.Status = before.Status
	}
	s.replace(after)
	*object = *after
	if stored := s.jobs[keyOf(after)]; stored != nil {
		*object = *stored.DeepCopy()
	}
	return nil
}

// checkPreconditions compares the UID and the resourceVersion in a patch with those of the Job.
func checkPreconditions(job *batchv1.Job, data []byte) error {
	var patch struct {
		Metadata struct{ UID, ResourceVersion string }
	}
	if err := json.Unmarshal(data, &patch); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	uid, version := patch.Metadata.UID, patch.Metadata.ResourceVersion
	if uid != "" && uid != string(job.UID) || version != "" && version != job.ResourceVersion {
		return conflict(job.Name)
	}
	return nil
}

func conflict(name string) error {
	return apierrors.NewConflict(jobsResource, name, errors.New("the object has been modified"))
}

// delete deletes a Job: in the foreground once its Pods are gone, in the background at once.
func (s *apiServer) delete(key types.NamespacedName, options client.DeleteOptions) error {
	job, err := s.job(key)
	if err != nil {
		return err
	}
	if p := options.Preconditions; p != nil && p.UID != nil && *p.UID != job.UID {
		return conflict(key.Name)
	}
	if job.DeletionTimestamp == nil {
		job.DeletionTimestamp = ptr.To(metav1.NewTime(s.clock.Now()))
		switch ptr.Deref(options.PropagationPolicy, metav1.DeletePropagationBackground) {
		case metav1.DeletePropagationForeground:
			job.Finalizers = append(job.Finalizers, metav1.FinalizerDeleteDependents)
		case metav1.DeletePropagationOrphan:
			job.Finalizers = append(job.Finalizers, metav1.FinalizerOrphanDependents)
		}
		s.store(job)
	}
	return nil
}

// collectGarbage completes deletions: no Pods are left.
func (s *apiServer) collectGarbage() {
	for _, key := range s.jobs.keys() {
		if s.jobs[key].DeletionTimestamp == nil {
			continue
		}
		s.change(key, func(job *batchv1.Job) {
			job.Finalizers = slices.DeleteFunc(job.Finalizers, func(f string) bool {
				return f == metav1.FinalizerDeleteDependents || f == metav1.FinalizerOrphanDependents
			})
		})
	}
}

func (j jobs) keys() []types.NamespacedName {
	return slices.SortedFunc(maps.Keys(j), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
}

// Get and List make jobs a cache that reads as a client does.
func (j jobs) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	job := j[key]
	if job == nil {
		return apierrors.NewNotFound(jobsResource, key.Name)
	}
	*into.(*batchv1.Job) = *job
	return nil
}

// List implements client.Reader.
func (j jobs) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	for _, key := range j.keys() {
		list := into.(*batchv1.JobList)
		list.Items = append(list.Items, *j[key])
	}
	return nil
}
