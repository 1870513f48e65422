package scenario

import (
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The Jobs are ordinary ones: what makes them Jobferry's is the label of their namespace.
func TestNoManifestNamesTheDispatcher(t *testing.T) {
	for _, name := range manifestNames(t) {
		text, err := manifests.ReadFile("jobs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "managedBy") {
			t.Errorf("%s sets managedBy", name)
		}
	}
}

func TestLoad(t *testing.T) {
	loaded, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	if len(loaded) != 9 {
		t.Errorf("%d Jobs", len(loaded))
	}
	for _, e := range loaded {
		if e.Job != nil && e.Job.Name != e.Name {
			t.Errorf("the manifest of %s is called %s", e.Name, e.Job.Name)
		}
		if n := e.Completions(); e.Expect.End == batchv1.JobComplete && e.Expect.Succeeded != n {
			t.Errorf("%s has %d completions, but %d are expected", e.Name, n, e.Expect.Succeeded)
		}
	}
}

func manifestNames(t *testing.T) (names []string) {
	t.Helper()
	files, err := manifests.ReadDir("jobs")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		names = append(names, file.Name())
	}
	return names
}

func TestEveryManifestIsUsed(t *testing.T) {
	var used []string
	for _, e := range entries {
		used = append(used, e.file+".yaml")
	}
	slices.Sort(used)
	if there, used := manifestNames(t), slices.Compact(used); !slices.Equal(there, used) {
		t.Errorf("there are %q, used are %q", there, used)
	}
}

func TestFromCronJob(t *testing.T) {
	cron := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "nightly", Namespace: "ns", UID: "u-1"}}
	cron.Spec.JobTemplate.Labels = map[string]string{"team": "a"}
	cron.Spec.JobTemplate.Annotations = map[string]string{"note": "b"}
	job := FromCronJob(cron, "now")
	owner := metav1.GetControllerOf(job)
	if owner == nil || owner.UID != "u-1" || owner.Kind != "CronJob" || owner.APIVersion != "batch/v1" {
		t.Errorf("owner %v", owner)
	}
	if job.Labels["team"] != "a" || job.Annotations["note"] != "b" ||
		job.Annotations["cronjob.kubernetes.io/instantiate"] != "manual" {
		t.Errorf("labels %v, annotations %v", job.Labels, job.Annotations)
	}
}

func TestParseRefusesMistakes(t *testing.T) {
	for _, text := range []string{
		"kind: Pod", "kind: Job\nspec: {completion: 3}", "kind: CronJob\nspec: {scheduled: now}",
		"kind: JobSet\nspec: {replicas: 3}", "\t",
	} {
		if err := (&Entry{}).parse([]byte(text)); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

func TestJudge(t *testing.T) {
	const backoff = batchv1.JobReasonBackoffLimitExceeded
	for _, row := range []struct {
		name   string
		expect Expectation
		got    Outcome
		want   []string
	}{
		{"as it should", Complete(2, 1), Outcome{End: batchv1.JobComplete, Succeeded: 2, Failed: 1}, nil},
		{"any reason will do", Complete(1, 0), Outcome{End: batchv1.JobComplete, Reason: "CompletionsReached", Succeeded: 1}, nil},
		{"fails as it should", Failed(backoff, 2), Outcome{End: batchv1.JobFailed, Reason: backoff, Failed: 2}, nil},
		{"not yet", Complete(1, 0), Outcome{Succeeded: 1}, []string{"expected to end as Complete, but has not ended"}},
		{"failed", Complete(1, 0), Outcome{End: batchv1.JobFailed, Reason: backoff, Failed: 1}, []string{
			"expected to end as Complete, but ended as Failed (BackoffLimitExceeded)",
			"succeeded Pods: expected 1, got 0", "failed Pods: expected 0, got 1",
		}},
		{"another reason", Failed(backoff, 0), Outcome{End: batchv1.JobFailed, Reason: "DeadlineExceeded"}, []string{
			"expected to end as Failed (BackoffLimitExceeded), but ended as Failed (DeadlineExceeded)",
		}},
	} {
		if got := row.expect.Judge(row.got); !slices.Equal(got, row.want) {
			t.Errorf("%s: %s", row.name, strings.Join(got, "; "))
		}
	}
}
