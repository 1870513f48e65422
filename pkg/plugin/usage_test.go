package plugin

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	accounts "github.com/jobferry/jobferry/pkg/manager/usage"
)

// usageHub has a Job that runs, one that ended three days ago, and one that ended two weeks ago.
func usageHub(t *testing.T) *fakeHub {
	h := newHub(t)
	list := &batchv1.JobList{}
	for name, age := range map[string]int{"runs": -1, "new": 3, "old": 14} {
		job := hubJob()
		job.Name, job.Status = name, batchv1.JobStatus{}
		if age >= 0 {
			job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue,
				LastTransitionTime: metav1.NewTime(now.AddDate(0, 0, -age))}}
		}
		hubstate.Set(job, hubstate.Changes{hubstate.Usage: accounts.Account{
			{Worker: "west", UID: "m", Seconds: 36000, Succeeded: 18000, Unknown: 3600, Left: age >= 0, At: accounts.Moment(now.Unix()),
				Requests: corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("1Gi")}},
		}.String()})
		list.Items = append(list.Items, *job)
	}
	h.answers["/apis/batch/v1/namespaces/team-a/jobs"] = list
	h.answers["/apis/batch/v1/jobs"] = list
	workers := &v1alpha1.WorkerClusterList{Items: []v1alpha1.WorkerCluster{{ObjectMeta: metav1.ObjectMeta{Name: "west"}}}}
	workers.Items[0].Spec.Cost = v1alpha1.Cost{"cpu": resource.MustParse("0.5")}
	h.answers["/apis/jobferry.dev/v1alpha1/workerclusters"] = workers
	return h
}

func TestUsageOfJobs(t *testing.T) {
	h := usageHub(t)
	h.tells(0, []string{"WORKER RESOURCE HOURS REPEATED UNKNOWN COST", "west cpu (CPU-hours) 40.00 10.00 4.00 20.00", "west memory (GiB-hours) 20.00 5.00 2.00 -", "west pods (hours) 20.00 5.00 2.00 -"}, "usage")
	h.tells(0, []string{"west pods (hours) 30.00 10.00"}, "usage", "--since", "30d")
	h.tells(0, []string{"west pods (hours) 10.00 0"}, "usage", "--since", "1h")
	h.tells(0, []string{"NAMESPACE WORKER", "team-a west pods (hours) 20.00"}, "usage", "-A")
	h.tells(1, []string{"there is no WorkerCluster east", "the hub has west"}, "usage", "--worker", "east")
	h.tells(0, []string{`"worker": "west", "resource": "memory", "unit": "GiB", "hours": 20, "repeatedHours": 5, "unknownHours": 2 }`, `"cost": 20`}, "usage", "-o", "json")
	h.tells(0, []string{"- cost: 20 hours: 40 namespace: team-a repeatedHours: 10 resource: cpu unknownHours: 4 worker: west"}, "usage", "-o", "yaml")
	h.tells(0, []string{"west pods (hours) 20.00"}, "usage", "--worker", "west") // also of Jobs that left it
	for _, since := range []string{"", "7", "-1h", "0d", "99999999d", "week"} {
		h.tells(2, []string{"a time such as 12h or 7d"}, "usage", "--since", since)
	}
}

func TestUsageFromPrometheus(t *testing.T) {
	h := usageHub(t)
	var queries []string
	answer := `{"status":"success","data":{"result":[{"metric":{"namespace":"team-a","worker":"west","resource":"cpu"},"value":[1,"7200"]}]}}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		queries = append(queries, r.URL.Path+" "+r.URL.Query().Get("query"))
		_, _ = fmt.Fprint(w, answer)
	}))
	defer server.Close()
	h.tells(0, []string{"west cpu (CPU-hours) 2.00 2.00 2.00 1.00"}, "usage", "--prometheus", server.URL+"/prefix/")
	want := `/prefix/api/v1/query sum by (namespace, worker, resource) (increase(jobferry_usage_resource_seconds_total{namespace="team-a",}[604800s])) > 0`
	if len(queries) != 3 || queries[0] != want {
		t.Errorf("queries %q, want %q", queries, want)
	}
	answer = `{"status":"error","error":"bad \u001b query"}`
	h.tells(1, []string{"bad"}, "usage", "--prometheus", server.URL)
	answer = `<html>`
	h.tells(1, []string{"can't be read"}, "usage", "--prometheus", server.URL)
	h.tells(1, []string{"isn't a URL"}, "usage", "--prometheus", "localhost")
	h.tells(2, []string{"doesn't know the labels"}, "usage", "--prometheus", server.URL, "-l", "a=b")
}

// tells is says for the words of a table, whatever is between them.
func (h *fakeHub) tells(code int, texts []string, args ...string) {
	h.t.Helper()
	got := h.run(args...)
	words := strings.Join(strings.Fields(got.out+" "+got.err), " ")
	for _, text := range texts {
		if got.code != code || !strings.Contains(words, text) {
			h.t.Errorf("%v: %d, no %q in %s", args, got.code, text, words)
		}
	}
}
