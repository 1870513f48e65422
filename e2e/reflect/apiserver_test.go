package reflect_test

import (
	"encoding/json"
	"errors"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// apiServer is a cluster's, as far as Jobs are concerned.
type apiServer struct {
	*program
	name    string
	version int
}

func (s *apiServer) next() string {
	s.version++
	return fmt.Sprint(s.version)
}

// create stores a new Job and returns it as a client sees it.
func (s *apiServer) create(job *batchv1.Job) (*batchv1.Job, error) {
	job = job.DeepCopy()
	job.UID = types.UID(s.name + "-" + s.next())
	job.ResourceVersion = s.next()
	job.CreationTimestamp = metav1.NewTime(epoch)
	return s.ask(request{New: job})
}

// update changes a Job's spec and metadata.
func (s *apiServer) update(old, changed *batchv1.Job) (*batchv1.Job, error) {
	return s.stored(request{Old: old, New: changed})
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
	return s.stored(request{Old: old, New: changed, Status: true})
}

func (s *apiServer) stored(r request) (*batchv1.Job, error) {
	job, err := s.ask(r)
	if err == nil {
		job.ResourceVersion = s.next()
	}
	return job, err
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
		return nil, errors.New("conflict: the patch is for another object")
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
