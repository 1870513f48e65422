package job

import (
	"encoding/json"
	"errors"
	"slices"

	jsonpatch "github.com/evanphx/json-patch/v5"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/mirror/recentfields"
)

// The fields of Jobs' specs that the types don't know are in apiServer.whole.

// typedOf is the Job that a request is about, as far as the types know it; false: it's about no
// Job.
func typedOf(object client.Object) (*batchv1.Job, bool) {
	switch object := object.(type) {
	case *batchv1.Job:
		return object, true
	case *unstructured.Unstructured:
		return fromTree(object.Object), object.GetKind() == "Job"
	case *wholeAnswer:
		return fromTree(object.Object), true
	case *metav1.PartialObjectMetadata:
		return &batchv1.Job{TypeMeta: object.TypeMeta, ObjectMeta: object.ObjectMeta}, object.Kind == "Job"
	default:
		return nil, false
	}
}

func fromTree(object map[string]any) *batchv1.Job {
	job := &batchv1.Job{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, job); err != nil {
		panic(err) // a mistake of the test
	}
	return job
}

func toTree(job *batchv1.Job) map[string]any {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(job)
	if err != nil {
		panic(err) // a Job converts
	}
	object["apiVersion"], object["kind"] = "batch/v1", "Job"
	return object
}

// answer puts a Job into the object that a client asked with: with all fields, if that has no
// types.
func (s *apiServer) answer(object client.Object, job *batchv1.Job) {
	switch into := object.(type) {
	case *batchv1.Job:
		*into = *job
	case *metav1.PartialObjectMetadata:
		into.ObjectMeta = *job.ObjectMeta.DeepCopy()
	case *unstructured.Unstructured:
		into.Object = s.withWhole(toTree(job), keyOf(job))
	case *wholeAnswer:
		into.answerWith(s.withWhole(toTree(job), keyOf(job)))
	}
}

// answerWith puts a Job into the answer.
func (a *wholeAnswer) answerWith(object map[string]any) {
	text, err := json.Marshal(object)
	if err := errors.Join(err, json.Unmarshal(text, a)); err != nil {
		panic(err) // a Job converts
	}
}

// withWhole adds what the types don't know.
func (s *apiServer) withWhole(object map[string]any, key types.NamespacedName) map[string]any {
	if whole := s.whole[key]; whole != nil {
		known := toTree(fromTree(map[string]any{"spec": runtime.DeepCopyJSON(whole)}))
		object["spec"] = recentfields.Graft(runtime.DeepCopyJSON(whole), known["spec"], object["spec"])
	}
	return object
}

// keep takes over the spec of a Job that was sent, but for the fields that the API server drops.
// One that is to be strict refuses them, if it doesn't know them.
func (s *apiServer) keep(object client.Object, strict bool) error {
	sent, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	spec, _ := runtime.DeepCopyJSON(sent.Object)["spec"].(map[string]any)
	for name := range spec {
		if slices.Contains(s.unknown, name) && strict {
			return apierrors.NewBadRequest(`strict decoding error: unknown field "spec.` + name + `"`)
		}
		if slices.Contains(s.unknown, name) || slices.Contains(s.switchedOff, name) {
			delete(spec, name)
		}
	}
	s.whole[client.ObjectKeyFromObject(object)] = spec
	return nil
}

// createJob creates a Job, or only says what it would become.
func (s *apiServer) createJob(object client.Object, job *batchv1.Job, o ...client.CreateOption) error {
	var options client.CreateOptions
	options.ApplyOptions(o)
	if s.jobs[keyOf(job)] != nil {
		return apierrors.NewAlreadyExists(jobsResource, job.Name)
	}
	if err := s.keep(object, options.FieldValidation == metav1.FieldValidationStrict); err != nil {
		return err
	}
	if len(options.DryRun) == 0 {
		if err := s.create(job); err != nil {
			return err
		}
	}
	s.answer(object, job)
	if len(options.DryRun) > 0 {
		delete(s.whole, keyOf(job))
	}
	return nil
}

// patchJob applies a merge patch, or a JSON patch, to a Job.
// places reports whether a patch of a Job's status changes its placement or its finalizers, and
// nothing that the Job shows.
func (s *apiServer) places(object client.Object, data []byte) bool {
	var patch struct {
		Metadata struct{ Finalizers *[]string }
		Status   map[string]json.RawMessage
	}
	is, err := s.job(client.ObjectKeyFromObject(object))
	if jsonErr := json.Unmarshal(data, &patch); err != nil || jsonErr != nil || len(patch.Status) > 1 || patch.Metadata.Finalizers != nil {
		return len(patch.Status) <= 1
	}
	next := &batchv1.Job{}
	if json.Unmarshal(patch.Status["conditions"], &next.Status.Conditions) != nil {
		return false
	}
	return slices.ContainsFunc([]hubstate.Key{hubstate.Cluster, hubstate.Shards, hubstate.ShardsState}, func(key hubstate.Key) bool {
		return hubstate.Get(is, key) != hubstate.Get(next, key)
	})
}

func (s *apiServer) patchJob(object client.Object, p client.Patch, status bool) error {
	job, _ := typedOf(object)
	if p.Type() == types.JSONPatchType {
		return s.patchUntyped(object, patchBytes(object, p))
	}
	job = named(job)
	if err := s.patch(job, patchBytes(object, p), status); err != nil {
		return err
	}
	s.answer(object, job)
	return nil
}

// patchStatus applies a merge patch to a Job's status.
func (s *apiServer) patchUntyped(object client.Object, data []byte) error {
	key := client.ObjectKeyFromObject(object)
	before, err := s.job(key)
	if err != nil {
		return err
	}
	text, err := json.Marshal(s.withWhole(toTree(before), key))
	patch, decodeErr := jsonpatch.DecodePatch(data)
	if err = errors.Join(err, decodeErr); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	var after map[string]any
	if text, err = patch.Apply(text); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if err := utiljson.Unmarshal(text, &after); err != nil {
		return err
	}
	sent := &unstructured.Unstructured{Object: after}
	if err := s.keep(sent, false); err != nil {
		return err
	}
	s.replace(fromTree(after))
	s.answer(object, s.jobs[key].DeepCopy())
	return nil
}

// hasField gives a Job on the hub a field of its spec that the types may not know.
func (w *world) hasField(name string, value any) {
	w.logf("user", "sets spec.%s", name)
	job := w.hub.jobs[jobKey]
	spec, _ := runtime.DeepCopyJSON(w.hub.withWhole(toTree(job), jobKey))["spec"].(map[string]any)
	if spec[name] = value; value == nil {
		delete(spec, name)
	}
	w.hub.whole[jobKey] = spec
	next := job.DeepCopy()
	next.Generation++
	w.hub.store(next)
}

// fieldIn is a field of the mirror's spec in a worker; nil: it has none.
func (v *fakeWorker) fieldIn(name string) any {
	if v.api.jobs[jobKey] == nil {
		return nil
	}
	return v.api.whole[jobKey][name]
}
