package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/recentfields"
)

// maxRecentTemplate bounds the values of a Pod template with recent fields: in maps each takes some
// 200 bytes, and is there several times.
const maxRecentTemplate = 30_000

// wholeTemplate is the spec of a Job's Pod template as the API server sends it: with the fields
// that the types of this build don't know.
type wholeTemplate struct {
	sent, known map[string]any
}

// wholeTemplate reads the Pod template of a mirror that has recent fields in it, as its record
// says; nil: it has none. It fails with errLeft until it's the Job's turn. A Job that no hub has
// sent has no record: its Pods have the fields that the types know, as those of the built-in have.
func (s *jobSync) wholeTemplate(ctx context.Context) (*wholeTemplate, error) {
	if !hasRecentTemplate(s.job) {
		return nil, nil
	}
	if err := s.checkRecentTemplate(); err != nil {
		return nil, err
	}
	key := client.ObjectKeyFromObject(s.job)
	if !s.templates.Take(key) {
		return nil, errLeft
	}
	defer s.templates.Ended(key)
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(batchv1.SchemeGroupVersion.WithKind("Job"))
	if err := s.live.Get(ctx, key, live); err != nil {
		return nil, fmt.Errorf("read the Pod template: %w", err)
	}
	if live.GetUID() != s.job.UID || live.GetGeneration() != s.job.Generation {
		return nil, apierrors.NewConflict(batchv1.Resource("jobs"), s.job.Name, fmt.Errorf("its spec has changed"))
	}
	sent, _, err := unstructured.NestedMap(live.Object, "spec", "template", "spec")
	if err != nil {
		return nil, fmt.Errorf("read the Pod template: %w", err)
	}
	var typed corev1.PodSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(sent, &typed); err != nil {
		return nil, fmt.Errorf("read the Pod template: %w", err)
	}
	known, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&typed)
	return &wholeTemplate{sent: sent, known: known}, err
}

func hasRecentTemplate(job *batchv1.Job) bool {
	for path := range mirror.RecentFields(job) {
		if strings.HasPrefix(path, "spec.template.spec.") {
			return true
		}
	}
	return false
}

// checkRecentTemplate refuses a template that would take too much as maps.
func (s *jobSync) checkRecentTemplate() error {
	text, err := json.Marshal(s.job.Spec.Template)
	if err != nil {
		return err
	}
	n := valuesIn(text)
	if n <= maxRecentTemplate {
		return nil
	}
	err = fmt.Errorf("the Pod template has %d values, and with fields that not every API server keeps it may have %d", n, maxRecentTemplate)
	s.events.Eventf(s.job, corev1.EventTypeWarning, "FailedCreate", "Error creating: %v", err)
	return err
}

// valuesIn counts the values in JSON; what looks like one in a string counts, too.
func valuesIn(text []byte) int {
	return bytes.Count(text, []byte("{")) + bytes.Count(text, []byte("[")) + bytes.Count(text, []byte(","))
}

// create creates a Pod with the recent fields of the template, and has the answer in the Pod.
func (t *wholeTemplate) create(ctx context.Context, c client.Client, p *corev1.Pod) error {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(p)
	if err != nil {
		return fmt.Errorf("convert the Pod: %w", err)
	}
	object["spec"] = recentfields.Graft(t.sent, t.known, object["spec"])
	delete(object, "status")
	pod := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(object)}
	pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	if err := c.Create(ctx, pod); err != nil {
		return err
	}
	*p = corev1.Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(pod.Object, p); err != nil {
		return fmt.Errorf("read the Pod that was created: %w", err)
	}
	return nil
}
