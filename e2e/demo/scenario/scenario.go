package scenario

import (
	"embed"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/yaml"
)

const (
	// Namespace of the demo's Jobs.
	Namespace = "demo"
	// Divided is the name of the Job that runs on several workers at once.
	Divided = "sweep"
)

//go:embed jobs/*.yaml
var manifests embed.FS

// Entry is one Job of the demo.
type Entry struct {
	// Name of the Job.
	Name string
	// Kind says in a few words what is special about it.
	Kind string
	// Expect is how it must end.
	Expect Expectation

	// Manifest is the name of the one that the Job comes from. It has one of the next three.
	Manifest string
	Job      *batchv1.Job
	// CronJob has a Job created from it.
	CronJob *batchv1.CronJob
	// JobSet makes the Job, and others: those with the same Manifest.
	JobSet *jobset.JobSet
}

// Completions is how many Pods of the Job must succeed.
func (e *Entry) Completions() int32 {
	spec := &batchv1.JobSpec{}
	switch {
	case e.Job != nil:
		spec = &e.Job.Spec
	case e.CronJob != nil:
		spec = &e.CronJob.Spec.JobTemplate.Spec
	case e.JobSet != nil:
		for i, part := range e.JobSet.Spec.ReplicatedJobs {
			if e.Name == fmt.Sprintf("%s-%s-0", e.JobSet.Name, part.Name) {
				spec = &e.JobSet.Spec.ReplicatedJobs[i].Template.Spec
			}
		}
	}
	return ptr.Deref(spec.Completions, ptr.Deref(spec.Parallelism, 1))
}

// entries are the Jobs in the order in which they are submitted and shown.
var entries = []struct {
	file   string
	name   string
	kind   string
	expect Expectation
}{
	{"pi", "pi", "one Pod", Complete(1, 0)},
	{"render", "render", "20 Pods, 6 at a time", Complete(20, 0)},
	{"shards", "shards", "Indexed, 10 Pods", Complete(10, 0)},
	{"flaky", "flaky", "fails once, is retried", Complete(1, 1)},
	{"doomed", "doomed", "fails, backoffLimit 1", Failed(batchv1.JobReasonBackoffLimitExceeded, 2)},
	{"nightly", "nightly-now", "from a CronJob, 2 Pods", Complete(2, 0)},
	{"train", "train-leader-0", "of a JobSet, starts first", Complete(1, 0)},
	{"train", "train-workers-0", "of a JobSet, 3 Pods", Complete(3, 0)},
	{Divided, Divided, "Indexed, 60 Pods, 20 at a time", Complete(60, 0)},
}

// Load reads the manifests. An error is a mistake in them: an unknown field, say.
func Load() ([]Entry, error) {
	var loaded []Entry
	for _, e := range entries {
		text, err := manifests.ReadFile("jobs/" + e.file + ".yaml")
		if err != nil {
			return nil, err
		}
		entry := Entry{Name: e.name, Kind: e.kind, Expect: e.expect, Manifest: e.file}
		if err := entry.parse(text); err != nil {
			return nil, fmt.Errorf("manifest %s: %w", e.file, err)
		}
		loaded = append(loaded, entry)
	}
	return loaded, nil
}

func (e *Entry) parse(text []byte) error {
	var kind metav1.TypeMeta
	if err := yaml.Unmarshal(text, &kind); err != nil {
		return err
	}
	switch kind.Kind {
	case "Job":
		e.Job = &batchv1.Job{}
		return yaml.UnmarshalStrict(text, e.Job)
	case "CronJob":
		e.CronJob = &batchv1.CronJob{}
		return yaml.UnmarshalStrict(text, e.CronJob)
	case "JobSet":
		e.JobSet = &jobset.JobSet{}
		return yaml.UnmarshalStrict(text, e.JobSet)
	}
	return fmt.Errorf("kind %q is none of Job, CronJob and JobSet", kind.Kind)
}

// FromCronJob makes the Job that "kubectl create job NAME --from=cronjob/..." would create from an
// existing CronJob.
func FromCronJob(cron *batchv1.CronJob, name string) *batchv1.Job {
	template := cron.Spec.JobTemplate.DeepCopy()
	annotations := map[string]string{"cronjob.kubernetes.io/instantiate": "manual"}
	for key, value := range template.Annotations {
		annotations[key] = value
	}
	owner := metav1.NewControllerRef(cron, batchv1.SchemeGroupVersion.WithKind("CronJob"))
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: cron.Namespace, Labels: template.Labels, Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{*owner},
		},
		Spec: template.Spec,
	}
}
