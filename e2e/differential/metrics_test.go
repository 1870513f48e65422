package main

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
)

const someMetrics = `# TYPE job_controller_job_syncs_total counter
job_controller_job_syncs_total{action="tracking",result="success"} 3
# TYPE job_controller_job_sync_duration_seconds histogram
job_controller_job_sync_duration_seconds_bucket{action="tracking",le="0.1"} 2
job_controller_job_sync_duration_seconds_bucket{action="tracking",le="+Inf"} 3
job_controller_job_sync_duration_seconds_sum{action="tracking"} 1
job_controller_job_sync_duration_seconds_count{action="tracking"} 3
`

// Metrics that differ in anything but their numbers are different.
func TestDescribeMetrics(t *testing.T) {
	for _, row := range []struct {
		name, old, new string
		same, values   bool // what is compared, of which the labels' values
	}{
		{name: "a number", old: `"} 3`, new: `"} 4`, same: true, values: true},
		{name: "a metric of others", old: "# TYPE", new: "# TYPE go_threads gauge\ngo_threads 8\n# TYPE", same: true, values: true},
		{name: "one more that one side alone has", old: "# TYPE", new: "# TYPE job_controller_cache_behind_seconds gauge\njob_controller_cache_behind_seconds 0\n# TYPE", same: true},
		{name: "a name", old: "job_syncs_total counter\njob_controller_job_syncs_total", new: "syncs_total counter\njob_controller_syncs_total"},
		{name: "a type", old: "counter", new: "gauge"},
		{name: "a label", old: "result=", new: "outcome="},
		{name: "a label less", old: `,result="success"`, new: ""},
		{name: "a bucket", old: "0.1", new: "0.2"},
		{name: "a label's value", old: `{action="tracking",result`, new: `{action="pods_created",result`, values: true},
		{name: "a label's value, few seeds", old: `{action="tracking",result`, new: `{action="pods_created",result`, same: true},
		{name: "a failure", old: "# TYPE job_controller_job_sync_", new: "job_controller_job_syncs_total{action=\"tracking\",result=\"error\"} 1\n# TYPE job_controller_job_sync_", same: true, values: true},
	} {
		t.Run(row.name, func(t *testing.T) {
			describe := func(text string) string {
				families, err := parseMetrics(strings.NewReader(text))
				if err != nil {
					t.Fatal(err)
				}
				return strings.Join(sets.List(describeMetrics(families, row.values)), "\n")
			}
			changed := strings.Replace(someMetrics, row.old, row.new, 1)
			if changed == someMetrics {
				t.Fatal("nothing is replaced")
			}
			if a, b := describe(someMetrics), describe(changed); (a == b) != row.same {
				t.Errorf("metrics\n%s\nand\n%s", a, b)
			}
		})
	}
}
