package admission_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// A hub of 1.36 claims Jobs by itself.
func TestClaimedByPolicy(t *testing.T) {
	claims(t, hubFor(t, newHub).withPolicies("policy"))
}

// An older hub asks the manager.
func TestClaimedByWebhook(t *testing.T) {
	h := hubFor(t, oldHub)
	serving(t, h, 1)
	claims(t, h)
}

// claims has Jobs created in every way, and looks at whose they are.
func claims(t *testing.T, h hub) {
	h.eventually("Jobs are claimed", func() bool {
		made, err := h.Hub.Client().BatchV1().Jobs(h.NS).Create(h.Context(), rigtest.Job(h.NS, "probe"),
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil && managedBy(made) == v1alpha1.ManagedByDispatcher
	})
	other := h.Namespace(h.Hub)
	rows := map[string]struct {
		job  *batchv1.Job
		want string
	}{
		"an ordinary Job":         {rigtest.Job(h.NS, "plain"), v1alpha1.ManagedByDispatcher},
		"a suspended one":         {rigtest.Job(h.NS, "suspended", rigtest.Suspended()), v1alpha1.ManagedByDispatcher},
		"claimed by its user":     {rigtest.Job(h.NS, "claimed", ours), v1alpha1.ManagedByDispatcher},
		"managed by another":      {rigtest.Job(h.NS, "another", rigtest.ManagedBy("example.org/x")), "example.org/x"},
		"kept on the hub":         {rigtest.Job(h.NS, "kept", rigtest.ManagedBy(batchv1.JobControllerName)), batchv1.JobControllerName},
		"a mirror of another hub": {rigtest.Job(h.NS, "mirror", labeled(v1alpha1.LabelOrigin, "other-hub")), ""},
		"in another namespace":    {rigtest.Job(other, "plain"), ""},
		"of a JobSet":             {rigtest.Job(h.NS, "of-a-jobset", controlledBy("jobset.x-k8s.io/v1alpha2", "JobSet")), v1alpha1.ManagedByDispatcher},
		"of a ScaledJob":          {rigtest.Job(h.NS, "of-a-scaledjob", controlledBy("keda.sh/v1alpha1", "ScaledJob")), v1alpha1.ManagedByDispatcher},
		"of a RayJob":             {rigtest.Job(h.NS, "of-a-rayjob", controlledBy("ray.io/v1", "RayJob")), ""},
		"of another's JobSet":     {rigtest.Job(h.NS, "of-a-namesake", controlledBy("example.org/v1", "JobSet")), ""},
		"of a core object":        {rigtest.Job(h.NS, "of-a-configmap", controlledBy("v1", "ConfigMap")), ""},
		"of a RayJob, claimed":    {rigtest.Job(h.NS, "of-a-rayjob-claimed", controlledBy("ray.io/v1", "RayJob"), ours), v1alpha1.ManagedByDispatcher},
		"owned, not controlled": {rigtest.Job(h.NS, "owned", controlledBy("ray.io/v1", "RayJob"), func(j *batchv1.Job) {
			j.OwnerReferences[0].Controller = nil
		}), v1alpha1.ManagedByDispatcher},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			if got := managedBy(h.Create(h.Hub, row.job)); got != row.want {
				t.Errorf("managedBy %q, want %q", got, row.want)
			}
		})
	}
	t.Run("written back without managedBy", func(t *testing.T) {
		jobs := h.Hub.Client().BatchV1().Jobs(h.NS)
		for name, want := range map[string]string{"plain": v1alpha1.ManagedByDispatcher, "another": ""} {
			job, err := jobs.Get(h.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			job.Spec.ManagedBy, job.Spec.Suspend = nil, ptr.To(true)
			switch written, err := jobs.Update(h.Context(), job, metav1.UpdateOptions{}); {
			case want == "" && !apierrors.IsInvalid(err):
				t.Errorf("Job %s, which is another's: %v", name, err)
			case want != "" && (err != nil || managedBy(written) != want || !*written.Spec.Suspend):
				t.Errorf("Job %s: %v, managedBy %q", name, err, managedBy(written))
			}
		}
	})
	t.Run("found by the label of its name, as one that isn't dispatched", func(t *testing.T) {
		for _, ns := range []string{other, h.NS} {
			for _, labels := range []map[string]string{nil, {"app": "a"}} {
				job := rigtest.Job(ns, "unlabelled"+labels["app"])
				job.Labels, job.Spec.Template.Labels = nil, labels
				made := h.Create(h.Hub, job)
				if made.Labels[batchv1.JobNameLabel] != made.Name || made.Labels["app"] != labels["app"] {
					t.Errorf("Pods with labels %v: the Job in namespace %s has %v", labels, ns, made.Labels)
				}
			}
		}
	})
	t.Run("kubectl create job --from", func(*testing.T) {
		h.cronJob("by-hand", true)
		h.Kubectl(h.Hub, "", "create", "job", "-n", h.NS, "by-hand-1", "--from=cronjob/by-hand")
		h.JobUntil(h.Hub, h.NS, "by-hand-1", isClaimed)
	})
	t.Run("the CronJob controller", func(*testing.T) {
		h.cronJob("minutely", false)
		h.due("minutely")
		h.jobOf("minutely", isClaimed)
	})
}

// controlledBy gives a Job a controller that there isn't.
func controlledBy(apiVersion, kind string) rigtest.Option {
	return func(j *batchv1.Job) {
		owner := metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: "owner", UID: "owner", Controller: ptr.To(true)}
		j.OwnerReferences = append(j.OwnerReferences, owner)
	}
}

func managedBy(job *batchv1.Job) string { return ptr.Deref(job.Spec.ManagedBy, "") }

func isClaimed(job *batchv1.Job) bool { return managedBy(job) == v1alpha1.ManagedByDispatcher }

// cronJob creates one for every minute.
func (h hub) cronJob(name string, suspended bool, edits ...rigtest.Option) {
	h.t.Helper()
	job := rigtest.Job(h.NS, name, edits...)
	cron := &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.NS, Name: name},
		Spec: batchv1.CronJobSpec{
			Schedule: "* * * * *", Suspend: &suspended,
			JobTemplate: batchv1.JobTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: job.Annotations}, Spec: job.Spec},
		},
	}
	if _, err := h.Hub.Client().BatchV1().CronJobs(h.NS).Create(h.Context(), cron, metav1.CreateOptions{}); err != nil {
		h.t.Fatal(err)
	}
}

// due has the CronJob controller believe that it missed the last minute.
func (h hub) due(name string) {
	h.t.Helper()
	patch := fmt.Appendf(nil, `{"status":{"lastScheduleTime":%q}}`, time.Now().Add(-90*time.Second).UTC().Format(time.RFC3339))
	_, err := h.Hub.Client().BatchV1().CronJobs(h.NS).Patch(h.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		h.t.Fatal(err)
	}
}

// jobOf waits for a Job that a CronJob made.
func (h hub) jobOf(cron string, condition func(*batchv1.Job) bool) {
	h.t.Helper()
	all := rig.Objects(h.Hub.Client().BatchV1().RESTClient(), "jobs", h.NS)
	h.Until(all, func(o runtime.Object) bool {
		job, ok := o.(*batchv1.Job)
		return ok && strings.HasPrefix(job.Name, cron+"-") && condition(job)
	})
}
