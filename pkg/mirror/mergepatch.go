package mirror

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	batchv1 "k8s.io/api/batch/v1"
)

// tree turns an API object, or a part of one, into its JSON values.
func tree(v any) map[string]any {
	decoder := json.NewDecoder(bytes.NewReader(mustMarshal(v)))
	decoder.UseNumber() // an int64 doesn't fit into a float64
	var out map[string]any
	if err := decoder.Decode(&out); err != nil {
		panic(fmt.Sprintf("an API object must be an object: %v", err))
	}
	return out
}

// mergeDiff returns the JSON merge patch (RFC 7386) that turns from into to.
func mergeDiff(from, to map[string]any) map[string]any {
	patch := map[string]any{}
	for key, old := range from {
		next, kept := to[key]
		switch {
		case !kept:
			patch[key] = nil
		case reflect.DeepEqual(old, next):
		default:
			oldMap, ok1 := old.(map[string]any)
			nextMap, ok2 := next.(map[string]any)
			if ok1 && ok2 {
				next = mergeDiff(oldMap, nextMap)
			}
			patch[key] = next
		}
	}
	for key, next := range to {
		if _, was := from[key]; !was {
			patch[key] = next
		}
	}
	return patch
}

// patchBytes completes a merge patch with the preconditions: the object's UID, and, if exact, the
// resourceVersion that was looked at.
func patchBytes(job *batchv1.Job, patch map[string]any, exact bool) []byte {
	meta := map[string]any{"uid": job.UID}
	if exact {
		meta["resourceVersion"] = job.ResourceVersion
	}
	given, _ := patch["metadata"].(map[string]any)
	maps.Copy(meta, given)
	whole := maps.Clone(patch)
	whole["metadata"] = meta
	return mustMarshal(whole)
}

// StatusPatch is the merge patch for jobs/status that takes a Job to the next status. It's refused
// if the Job has changed since it was looked at: whether a status is acceptable depends on the
// spec.
func StatusPatch(job *batchv1.Job, next *batchv1.JobStatus) []byte {
	return patchBytes(job, map[string]any{
		"status": mergeDiff(tree(&job.Status), tree(next)),
	}, true)
}
