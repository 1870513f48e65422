package plugin

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// movingHub has the Job shards in west, and workers with labels. It keeps what is patched.
func movingHub(t *testing.T, job *batchv1.Job, edits ...func(*v1alpha1.WorkerCluster)) (h *fakeHub, patched *[]string) {
	h, patched = newHub(t), &[]string{}
	east := v1alpha1.WorkerCluster{ObjectMeta: metav1.ObjectMeta{Name: "east", Labels: map[string]string{"region": "eu", "name": "east", "only": "here"}}}
	east.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: "True"}, {Type: v1alpha1.ConditionSchedulable, Status: "True"}}
	for _, edit := range edits {
		edit(&east)
	}
	west := v1alpha1.WorkerCluster{ObjectMeta: metav1.ObjectMeta{Name: "west", Labels: map[string]string{"region": "eu"}}}
	h.answers["/apis/jobferry.dev/v1alpha1/workerclusters"] = &v1alpha1.WorkerClusterList{Items: []v1alpha1.WorkerCluster{east, west}}
	h.answers[jobPath] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			*patched = append(*patched, r.URL.Query().Get("dryRun")+string(body))
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(job); err != nil {
			t.Error(err)
		}
	})
	return h, patched
}

func TestMove(t *testing.T) {
	const patch = `{"metadata":{"annotations":{"jobferry.dev/cluster-selector":"name=east"}}}`
	job := hubJob()
	h, patched := movingHub(t, job)
	want := said{
		out: "job.batch/shards annotated with jobferry.dev/cluster-selector=name=east\n",
		err: "It stays on west until there is room on east, and then moves, with its progress. Follow it: kubectl jobferry jobs shards -n team-a -w\n" +
			"It had no selector. To let it go elsewhere again: kubectl annotate job shards -n team-a jobferry.dev/cluster-selector-\n",
	}
	if got := h.run("move", "shards", "--to", "east"); got != want {
		t.Errorf("%+v", got)
	}
	job.Annotations = map[string]string{v1alpha1.AnnotationClusterSelector: "region in (eu)"}
	const dry = "Nothing was changed. Its selector was \"region in (eu)\".\n"
	h.says(0, []string{" (dry run)\n" + dry}, "move", "shards", "--to", "wc/east", "--dry-run=client")
	h.says(0, []string{" (server dry run)\n" + dry}, "move", "shards", "--to", "east", "--dry-run=server")
	if got := strings.Join(*patched, " "); got != patch+" All"+patch {
		t.Errorf("patched %s", got)
	}
	h.says(0, []string{`Its selector was "region in (eu)". To let it go elsewhere again: kubectl annotate job shards -n team-a --overwrite 'jobferry.dev/cluster-selector=region in (eu)'`},
		"move", "shards", "--to", "east")
	job.Annotations[v1alpha1.AnnotationClusterSelector] = "a';ls;'"
	h.says(0, []string{"kubectl annotate job shards -n team-a jobferry.dev/cluster-selector-\n"}, "move", "shards", "--to", "east")
	h.says(0, []string{"job.batch/shards is already on west\n"}, "move", "shards", "--to", "west")
	h.says(exitUsage, []string{"the worker is missing: set --to"}, "move", "shards")
	h.says(exitUsage, []string{`Must be "none", "server", or "client"`}, "move", "shards", "--to", "east", "--dry-run=maybe")

	job.Status = batchv1.JobStatus{}
	h.says(0, []string{"It goes to east as soon as there is room."}, "move", "shards", "--to", "east")
}

// What can't work is refused, and nothing is changed.
func TestMoveThatCantWork(t *testing.T) {
	annotated := func(key, value string) func(*batchv1.Job) {
		return func(j *batchv1.Job) { j.Annotations = map[string]string{key: value} }
	}
	none := func(*batchv1.Job) {}
	for want, row := range map[string]struct {
		job    func(*batchv1.Job)
		worker func(*v1alpha1.WorkerCluster)
	}{
		"it has ended":                                          {isComplete, nil},
		"it's in a group, whose Jobs run in":                    {annotated(v1alpha1.AnnotationGroup, "g"), nil},
		"it's of a JobSet":                                      {ownedBy("jobset.x-k8s.io/v1alpha2", "JobSet", "s"), nil},
		"no step of its annotation jobferry.dev/cl":             {annotated(v1alpha1.AnnotationClusterPreference, "region=us; region=asia after 5m"), nil},
		"it's cordoned or drained\n  kubectl jobferry uncordon": {none, func(w *v1alpha1.WorkerCluster) { w.Spec.Cordoned = true }},
		"the worker isn't Ready":                                {none, func(w *v1alpha1.WorkerCluster) { w.Status.Conditions[0].Status = "False" }},
		"its condition Schedulable says why":                    {none, func(w *v1alpha1.WorkerCluster) { w.Status.Conditions[1].Status = "False" }},
		"no label that no other worker has, by which the Job could select it\n  an admin of the hub gives it one: kubectl label workercluster east name=east": {none,
			func(w *v1alpha1.WorkerCluster) { w.Labels = map[string]string{"region": "eu"} }},
	} {
		t.Run(want, func(t *testing.T) {
			job := hubJob()
			row.job(job)
			edit := row.worker
			if edit == nil {
				edit = func(*v1alpha1.WorkerCluster) {}
			}
			h, patched := movingHub(t, job, edit)
			h.says(exitFailed, []string{"error: the Job shards can't move to east: ", want}, "move", "shards", "--to", "east")
			if len(*patched) > 0 {
				t.Errorf("patched %s", *patched)
			}
		})
	}
}

// A worker's own name is the best label; without it, any that no other worker has.
func TestLabelOfAWorker(t *testing.T) {
	h, patched := movingHub(t, hubJob(), func(w *v1alpha1.WorkerCluster) { w.Labels = map[string]string{"region": "eu", "only": "here"} })
	h.says(0, []string{"jobferry.dev/cluster-selector=only=here\n"}, "move", "shards", "--to", "east")
	if len(*patched) != 1 {
		t.Errorf("patched %s", *patched)
	}
	h.answers["/apis/jobferry.dev/v1alpha1/workerclusters"] = refusal(http.StatusForbidden, metav1.StatusReasonForbidden, "workerclusters is forbidden", nil)
	h.says(exitFailed, []string{"workerclusters is forbidden", "you lack that permission"}, "move", "shards", "--to", "east")
}
