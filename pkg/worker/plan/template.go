package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	indexEnv = "JOB_COMPLETION_INDEX"
	// maxGenerateName is what of a generateName the API server keeps: a name's 63 characters less
	// the 5 random ones.
	maxGenerateName = 58
)

// newPod is a Pod of the Job's template, as it's sent to the API server.
func (f *facts) newPod() *corev1.Pod {
	template := f.job.Spec.Template.DeepCopy()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:    f.job.Namespace,
			GenerateName: f.job.Name + "-",
			Labels:       copyOf(template.Labels),
			Annotations:  copyOf(template.Annotations),
			Finalizers:   template.Finalizers,
			OwnerReferences: []metav1.OwnerReference{
				*controllerRef(f.job),
			},
		},
		Spec: template.Spec,
	}
	if !slices.Contains(p.Finalizers, f.options.TrackingFinalizer) {
		p.Finalizers = append(p.Finalizers, f.options.TrackingFinalizer)
	}
	return p
}

// newIndexedPod is the Pod of one index: the index is in an annotation, a label, the hostname, the
// name, and in every container's environment.
func (f *facts) newIndexedPod(index int) *corev1.Pod {
	p, text := f.newPod(), strconv.Itoa(index)
	p.GenerateName = indexedNamePrefix(f.job.Name, text)
	p.Annotations[batchv1.JobCompletionIndexAnnotation] = text
	p.Labels[batchv1.JobCompletionIndexAnnotation] = text
	p.Spec.Hostname = fmt.Sprintf("%s-%s", f.job.Name, text)
	for i := range p.Spec.InitContainers {
		addIndexEnv(&p.Spec.InitContainers[i])
	}
	for i := range p.Spec.Containers {
		addIndexEnv(&p.Spec.Containers[i])
	}
	if perIndex(f.job) {
		f.annotateFailures(p, f.indexes.awaiting[index])
	}
	return p
}

// annotateFailures hands the failures of an index on to its next Pod.
func (f *facts) annotateFailures(p *corev1.Pod, replaced *pod) {
	counted, ignored := 0, 0
	if replaced != nil {
		counted = countedFailures(replaced.Pod)
		ignored = allFailures(replaced.Pod) - counted
		if f.ruling(replaced).counts() {
			counted++
		} else {
			ignored++
		}
	}
	p.Annotations[batchv1.JobIndexFailureCountAnnotation] = strconv.Itoa(counted)
	if ignored > 0 {
		p.Annotations[batchv1.JobIndexIgnoredFailureCountAnnotation] = strconv.Itoa(ignored)
	}
}

// addIndexEnv leaves a variable that the user has set alone.
func addIndexEnv(c *corev1.Container) {
	if slices.ContainsFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == indexEnv }) {
		return
	}
	field := fmt.Sprintf("metadata.labels['%s']", batchv1.JobCompletionIndexAnnotation)
	c.Env = append(c.Env, corev1.EnvVar{
		Name:      indexEnv,
		ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: field}},
	})
}

// indexedNamePrefix keeps the index readable in names of long Jobs.
func indexedNamePrefix(jobName, index string) string {
	suffix := "-" + index + "-"
	return jobName[:min(len(jobName), maxGenerateName-len(suffix))] + suffix
}

func copyOf(m map[string]string) map[string]string {
	out := make(map[string]string, len(m)+1)
	maps.Copy(out, m)
	return out
}
