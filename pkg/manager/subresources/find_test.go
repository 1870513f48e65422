package subresources

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/apistatus"
)

func unplaced(j *batchv1.Job) { j.Status = batchv1.JobStatus{} }

func over(j *batchv1.Job) {
	j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: batchv1.JobFailed, Status: "True"})
}

func TestPlacement(t *testing.T) {
	rows := map[string]struct {
		job  *batchv1.Job
		code int32
		text string
	}{
		"placed":               {hubJob(), 0, ""},
		"placed and ended":     {hubJob(over), 0, ""},
		"not placed":           {hubJob(unplaced), http.StatusConflict, "isn't placed on a worker yet"},
		"suspended":            {hubJob(unplaced, func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) }), http.StatusConflict, "is suspended"},
		"suspended but placed": {hubJob(func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) }), 0, ""},
		"ended before":         {hubJob(unplaced, over), http.StatusNotFound, "without ever having been placed"},
		"of the hub itself": {hubJob(func(j *batchv1.Job) { j.Spec.ManagedBy = nil }), http.StatusBadRequest,
			`its spec.managedBy is "kubernetes.io/job-controller"`},
		"of somebody else": {hubJob(func(j *batchv1.Job) { j.Spec.ManagedBy = ptr.To("x/y") }), http.StatusBadRequest, `"x/y"`},
	}
	for name, row := range rows {
		workers, err := placement(row.job)
		var s metav1.Status
		if err != nil {
			s = apistatus.Of(err)
		}
		if (row.code == 0) != (err == nil) || row.code == 0 && !slices.Equal(workers, []string{"w"}) ||
			row.code != 0 && (s.Code != row.code || !strings.Contains(s.Message, row.text)) {
			t.Errorf("%s: %q, %d %q", name, workers, s.Code, s.Message)
		}
	}
}

// Whose the Job in the worker is, is proved before anything of it is shown.
func TestNoProofNoAnswer(t *testing.T) {
	rows := map[string]struct {
		mirror *batchv1.Job
		hub    *batchv1.Job
		code   int
		text   string
	}{
		"of another hub":         {mirrorJob(func(j *batchv1.Job) { j.Labels[v1alpha1.LabelOrigin] = "there" }), hubJob(), http.StatusConflict, "hasn't started there yet"},
		"of no hub":              {mirrorJob(func(j *batchv1.Job) { j.Labels, j.Annotations = nil, nil }), hubJob(), http.StatusConflict, "hasn't started there yet"},
		"of an earlier Job":      {mirrorJob(func(j *batchv1.Job) { j.Annotations[v1alpha1.AnnotationHubUID] = "old" }), hubJob(), http.StatusConflict, "hasn't started there yet"},
		"none, the Job is moved": {nil, hubJob(func(j *batchv1.Job) { hubstate.Set(j, hubstate.Changes{hubstate.MovedFrom: "v"}) }), http.StatusConflict, `being moved from worker "v" to "w"`},
		"none, the Job is over":  {nil, hubJob(over), http.StatusNotFound, "has no copy of it any more"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.hub.put(row.hub)
			const path = "/apis/batch/v1/namespaces/team/jobs/job"
			w.worker.object(path, row.mirror)
			if row.mirror == nil {
				w.worker.on(path, nil)
			}
			for _, what := range []string{"log", "pods", "events", "mirror"} {
				w.refused(what, row.code, row.text)
			}
		})
	}
}

func TestWorkersThatCantBeAsked(t *testing.T) {
	rows := map[string]struct {
		edit func(*world)
		text string
	}{
		"lost":         {func(w *world) { w.hub.put(workerCluster(metav1.ConditionFalse, "no answer\x1b[2J in time")) }, "out of touch since 0001-01-01T00:00:00Z: Unreachable: no answer [2J in time"},
		"gone":         {func(w *world) { w.hub.remove(workerCluster("", "")) }, "isn't registered any more"},
		"no Secret":    {func(w *world) { w.hub.remove(w.worker.secret("")) }, "has no kubeconfig any more"},
		"a bad Secret": {func(w *world) { s := w.worker.secret("2"); s.Data = nil; w.hub.put(s) }, "kubeconfig of worker \"w\" can't be used"},
		"new":          {func(w *world) { c := workerCluster("", ""); c.Status.Conditions = nil; w.hub.put(c) }, "isn't connected yet"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			row.edit(w)
			w.refused("mirror", http.StatusServiceUnavailable, row.text)
			if n := len(w.worker.heard()); n > 0 {
				t.Errorf("the worker was asked %d times", n)
			}
		})
	}
}
