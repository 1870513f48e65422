package plugin

import (
	"net/http"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/namespaces"
)

func jobOnHub(edits ...func(*batchv1.Job)) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "pi"}}
	for _, edit := range edits {
		edit(job)
	}
	return job
}

func managedBy(controller string) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.Spec.ManagedBy = &controller }
}

func ownedBy(apiVersion, kind, name string) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, Controller: ptr.To(true)}}
	}
}

func in(namespace string) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.Namespace = namespace }
}

// Why a Job isn't dispatched, and what changes that, in words.
func TestWhyAJobIsNotDispatched(t *testing.T) {
	const (
		byAdmin  = "an admin of the hub labels the namespace: kubectl label namespace team-a jobferry.dev/dispatch=enabled"
		toCreate = "create it again without spec.managedBy, which can't be changed: kubectl replace --force -n team-a -f FILE"
	)
	enabled, allowed := map[string]string{"jobferry.dev/dispatch": "enabled"}, map[string]string{"jobferry.dev/dispatch": "allowed"}
	for name, row := range map[string]struct {
		job    *batchv1.Job
		labels map[string]string // nil: they can't be read
		why    string
		ways   []string
	}{
		"no label": {jobOnHub(), map[string]string{}, "namespace team-a isn't: it has no label jobferry.dev/dispatch",
			[]string{byAdmin, "then create the Job again, as its controller can't be changed: kubectl replace --force -n team-a -f FILE"}},
		"another label": {jobOnHub(), map[string]string{"jobferry.dev/dispatch": "yes"}, `namespace team-a isn't: its label jobferry.dev/dispatch is "yes", which is neither enabled nor allowed`,
			[]string{byAdmin + " --overwrite", "then create the Job again, as its controller can't be changed: kubectl replace --force -n team-a -f FILE"}},
		"opted out": {jobOnHub(managedBy("kubernetes.io/job-controller")), enabled,
			"it was opted out: its spec.managedBy is kubernetes.io/job-controller, the hub's own Job controller", []string{toCreate}},
		"opted out, without a label": {jobOnHub(managedBy("kubernetes.io/job-controller")), map[string]string{},
			"it was opted out: its spec.managedBy is kubernetes.io/job-controller, the hub's own Job controller", []string{byAdmin, toCreate}},
		"of another controller": {jobOnHub(managedBy("kueue.x-k8s.io/multikueue")), enabled,
			"its spec.managedBy names another controller, kueue.x-k8s.io/multikueue", []string{toCreate}},
		"older than the label": {jobOnHub(), enabled, "it was created before namespace team-a had its label, or Jobferry its admission",
			[]string{"create it again, as its controller can't be changed: kubectl replace --force -n team-a -f FILE"}},
		"of a CronJob, older than the label": {jobOnHub(ownedBy("batch/v1", "CronJob", "nightly")), enabled, "it was created before namespace team-a had its label, or Jobferry its admission",
			[]string{"create it again, as its controller can't be changed: kubectl create job pi-again -n team-a --from=cronjob/nightly"}},
		"of a CronJob that a shell obeys": {jobOnHub(ownedBy("batch/v1", "CronJob", "x;ls")), enabled, "it was created before namespace team-a had its label, or Jobferry its admission",
			[]string{"create it again, as its controller can't be changed: kubectl replace --force -n team-a -f FILE"}},
		"of a controller that stays": {jobOnHub(ownedBy("ray.io/v1", "RayJob", "train")), enabled, "it belongs to train, a RayJob.ray.io, whose Jobs stay on the hub",
			[]string{"set spec.managedBy: jobferry.dev/dispatcher in the Job template of the RayJob", "or have an admin of the hub add RayJob.ray.io to the chart's value dispatch.owners"}},
		"of a controller that writes lines": {jobOnHub(ownedBy("ray.io/v1", "A\n  kubectl delete", "a\nb")), enabled, "it belongs to a b, a A kubectl delete.ray.io, whose Jobs stay on the hub",
			[]string{"set spec.managedBy: jobferry.dev/dispatcher in the Job template of the A kubectl delete", "or have an admin of the hub add A kubectl delete.ray.io to the chart's value dispatch.owners"}},
		"allowed": {jobOnHub(), allowed, "in namespace team-a, with jobferry.dev/dispatch=allowed, only Jobs with spec.managedBy: jobferry.dev/dispatcher are",
			[]string{"create it again with that field: kubectl replace --force -n team-a -f FILE",
				"or have an admin of the hub let Jobferry take all new Jobs: kubectl label namespace team-a jobferry.dev/dispatch=enabled --overwrite"}},
		"of the system": {jobOnHub(in("kube-system")), map[string]string{}, "Jobs of namespace kube-system never are, whatever its labels", []string{"create it in another namespace"}},
		"a mirror": {jobOnHub(func(j *batchv1.Job) { j.Labels = map[string]string{"jobferry.dev/origin": "hub"} }), enabled,
			"another hub has made it here, as in its worker", []string{"on that hub, kubectl jobferry describe shows it"}},
		"nobody may know": {jobOnHub(), nil, "its spec.managedBy isn't set. You may not read namespace team-a: it isn't labelled, or the Job is older than the label, or its controller's Jobs stay on the hub",
			[]string{"an admin of the hub sees the label: kubectl get namespace team-a -L jobferry.dev/dispatch", "if it's enabled, create the Job again: kubectl replace --force -n team-a -f FILE"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := undispatched{row.job, row.labels, row.labels != nil, namespaces.Gate{Own: "ferry"}}.reason()
			if got.why != row.why || strings.Join(got.ways, "\n") != strings.Join(row.ways, "\n") {
				t.Errorf("%s\n%s\nwant:\n%s\n%s", got.why, strings.Join(got.ways, "\n"), row.why, strings.Join(row.ways, "\n"))
			}
		})
	}
}

// undispatchedHub has the Job shards on the hub itself, in a namespace with these labels.
func undispatchedHub(t *testing.T, labels map[string]string) *fakeHub {
	h, job := newHub(t), hubJob()
	job.Spec.ManagedBy = nil
	h.answers[jobPath] = job
	h.answers["/apis/batch/v1/namespaces/team-a/jobs"] = &batchv1.JobList{Items: []batchv1.Job{*job}}
	h.answers["/apis/batch/v1/jobs"] = &batchv1.JobList{Items: []batchv1.Job{*job, *jobOnHub(in("kube-system"))}}
	h.answers["/api/v1/namespaces/team-a"] = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a", Labels: labels}}
	return h
}

// All commands say the same of a Job that isn't dispatched.
func TestCommandsForAJobThatIsNotDispatched(t *testing.T) {
	h := undispatchedHub(t, nil)
	for _, args := range []string{
		"jobs shards", "describe shards", "why shards", "pods shards", "logs shards", "logs shards -f", "events shards", "exec shards -- ls",
		"attach shards", "port-forward shards 80", "cp shards:/a b", "cp plugin_test.go shards:/a", "move shards --to west",
	} {
		h.says(exitFailed, []string{
			"error: the Job shards isn't dispatched: namespace team-a isn't: it has no label jobferry.dev/dispatch\n",
			"\n  an admin of the hub labels the namespace: kubectl label namespace team-a jobferry.dev/dispatch=enabled\n",
			"\n  then create the Job again", "\n  until then, kubectl itself shows its Pods and logs\n",
		}, strings.Fields(args)...)
	}
}

// A table without Jobs says which there are, and why they aren't in it.
func TestTableOfJobsThatAreNotDispatched(t *testing.T) {
	h := undispatchedHub(t, nil)
	h.says(0, []string{"No Jobs of Jobferry found in namespace team-a.\nNot dispatched: shards: namespace team-a isn't: it has no label",
		"\n  an admin of the hub labels the namespace: "}, "jobs")
	h.says(0, []string{"Jobs that aren't dispatched are in team-a. kubectl jobferry jobs -n team-a says why.\n"}, "jobs", "-A")
	h.refuse("/api/v1/namespaces/team-a", http.StatusForbidden, metav1.StatusReasonForbidden, "no", nil)
	h.says(0, []string{"You may not read namespace team-a"}, "jobs")

	left, done, out, ray := *jobOnHub(), *jobOnHub(), *jobOnHub(managedBy("kubernetes.io/job-controller")), *jobOnHub(ownedBy("ray.io/v1", "RayJob", "train"))
	done.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	h.answers["/apis/batch/v1/namespaces/team-a/jobs"] = &batchv1.JobList{Items: []batchv1.Job{*hubJob(), left, done, out, ray}}
	if got := h.run("jobs"); got.err != "Not dispatched: pi. kubectl jobferry why pi -n team-a says why.\n" {
		t.Errorf("%+v", got)
	}
}

func TestNamed(t *testing.T) {
	for names, want := range map[string]string{"a": "a", "a b c d": "a, b, c, d", "a b c d e": "a, b, c and 2 more"} {
		if got := named(strings.Fields(names), namesShown); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
