package scenario

import (
	"embed"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

	// Job is what to create; nil if it's created from CronJob.
	Job *batchv1.Job
	// CronJob is created first, where there is one.
	CronJob *batchv1.CronJob
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
		entry := Entry{Name: e.name, Kind: e.kind, Expect: e.expect}
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
	}
	return fmt.Errorf("kind %q is neither Job nor CronJob", kind.Kind)
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
