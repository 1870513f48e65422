package plugin

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSortedJobs(t *testing.T) {
	h := newHub(t)
	list := &batchv1.JobList{}
	for i, name := range []string{"b", "c", "a"} {
		job := hubJob()
		job.Name = name
		job.CreationTimestamp = metav1.NewTime(now.Add(time.Duration(-i) * time.Hour))
		job.Labels = map[string]string{"size": []string{"10", "9", "1k"}[i]}
		job.Status.Succeeded = int32(i + 1)
		list.Items = append(list.Items, *job)
	}
	list.Items[1].Status = batchv1.JobStatus{} // it waits
	h.answers["/apis/batch/v1/namespaces/team-a/jobs"] = list
	for field, want := range map[string]string{
		".metadata.name": "a b c", "metadata.creationTimestamp": "a c b", "{.status.succeeded}": "c b a", ".status.state": "c b a",
		".metadata.labels.size": "c b a",
	} {
		got := h.run("jobs", "--sort-by", field, "-o", "jsonpath={.items[*].metadata.name}")
		if got.out != want {
			t.Errorf("%s: %+v, want %s", field, got, want)
		}
	}
}

// A name that would be a quantity of a billion digits is sorted as a text.
func TestCostlyNamesAreSorted(t *testing.T) {
	h := newHub(t)
	list := &batchv1.JobList{}
	for _, name := range []string{"1e999999999", "2", "1"} {
		job := hubJob()
		job.Name = name
		list.Items = append(list.Items, *job)
	}
	h.answers["/apis/batch/v1/namespaces/team-a/jobs"] = list
	done := make(chan said, 1)
	go func() {
		done <- h.run("jobs", "--sort-by", ".metadata.name", "-o", "jsonpath={.items[*].metadata.name}")
	}()
	select {
	case got := <-done:
		if got.out != "1 1e999999999 2" {
			t.Errorf("%+v", got)
		}
	case <-time.After(time.Minute):
		t.Fatal("the names are compared as quantities")
	}
}
