package reflect_test

import (
	"context"
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/batch"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	strategy "k8s.io/kubernetes/pkg/registry/batch/job"
)

// apiServer is what an API server does to a Job between the request and etcd.
type apiServer struct {
	name    string
	version int
}

func (s *apiServer) next() string {
	s.version++
	return fmt.Sprint(s.version)
}

// create stores a new Job and returns it as a client sees it.
func (s *apiServer) create(job *batchv1.Job) (*batchv1.Job, error) {
	job = viaJSON(job)
	job.UID = types.UID(s.name + "-" + s.next())
	job.ResourceVersion = s.next()
	job.CreationTimestamp = metav1.NewTime(epoch)
	legacyscheme.Scheme.Default(job)
	in := internal(job)
	strategy.Strategy.PrepareForCreate(context.Background(), in)
	if errs := strategy.Strategy.Validate(context.Background(), in); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	return external(in), nil
}

// update changes a Job's spec and metadata.
func (s *apiServer) update(old, changed *batchv1.Job) (*batchv1.Job, error) {
	changed = viaJSON(changed)
	legacyscheme.Scheme.Default(changed)
	in, was := internal(changed), internal(old)
	strategy.Strategy.PrepareForUpdate(context.Background(), in, was)
	return s.stored(in, strategy.Strategy.ValidateUpdate(context.Background(), in, was))
}

// patch is update by a JSON merge patch.
func (s *apiServer) patch(old *batchv1.Job, patch []byte) (*batchv1.Job, error) {
	changed, err := merged(old, patch)
	if err != nil {
		return nil, err
	}
	return s.update(old, changed)
}

// patchStatus changes a Job's status by a JSON merge patch.
func (s *apiServer) patchStatus(old *batchv1.Job, patch []byte) (*batchv1.Job, error) {
	changed, err := merged(old, patch)
	if err != nil {
		return nil, err
	}
	in, was := internal(changed), internal(old)
	strategy.StatusStrategy.PrepareForUpdate(context.Background(), in, was)
	return s.stored(in, strategy.StatusStrategy.ValidateUpdate(context.Background(), in, was))
}

func (s *apiServer) stored(in *batch.Job, errs field.ErrorList) (*batchv1.Job, error) {
	if len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	out := external(in)
	out.ResourceVersion = s.next()
	return out, nil
}

// merged applies a merge patch; its UID and resourceVersion are preconditions.
func merged(old *batchv1.Job, patch []byte) (*batchv1.Job, error) {
	before, err := json.Marshal(old)
	if err != nil {
		return nil, err
	}
	after, err := jsonpatch.MergePatch(before, patch)
	if err != nil {
		return nil, err
	}
	var job batchv1.Job
	if err := json.Unmarshal(after, &job); err != nil {
		return nil, fmt.Errorf("a patch that doesn't decode: %w", err)
	}
	if job.UID != old.UID || job.ResourceVersion != old.ResourceVersion {
		return nil, fmt.Errorf("conflict: the patch is for another object")
	}
	return &job, nil
}

// viaJSON returns a Job after its way through JSON.
func viaJSON(job *batchv1.Job) *batchv1.Job {
	data, err := json.Marshal(job)
	if err != nil {
		panic(err)
	}
	var out batchv1.Job
	if err := json.Unmarshal(data, &out); err != nil {
		panic(err)
	}
	return &out
}

func internal(job *batchv1.Job) *batch.Job {
	var out batch.Job
	if err := legacyscheme.Scheme.Convert(viaJSON(job), &out, nil); err != nil {
		panic(err)
	}
	return &out
}

func external(job *batch.Job) *batchv1.Job {
	var out batchv1.Job
	if err := legacyscheme.Scheme.Convert(job, &out, nil); err != nil {
		panic(err)
	}
	return &out
}
