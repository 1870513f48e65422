package dispatchedjobs

import (
	"fmt"
	"net/http/httptest"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
)

// BenchmarkTable makes the table of 5,000 Jobs, a fifth of which wait.
func BenchmarkTable(b *testing.B) {
	s, _ := newServer()
	page := &batchv1.JobList{}
	for i := range 5000 {
		name := fmt.Sprint("job-", i)
		page.Items = append(page.Items, *job(name, "1"))
		if i%5 == 0 {
			s.reasons.apply("ADDED", event(name, "Pending", "0/2 clusters available: 1 Insufficient cpu, 1 cordoned.", 1))
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		out := &list{to: httptest.NewRecorder(), form: form{table: true}}
		if _, err := s.items(out, page.Items); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(s.reasons.held.reasons)), "reasons")
}
