package view

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/usage"
)

// used gives a Job the account of an hour in west with 2 CPUs, and, if it moved, of a half one
// before that, with a GPU in east, and maybe a quarter more.
func used(moved bool) func(*batchv1.Job) {
	account := usage.Account{{Worker: "west", UID: "w", Seconds: 3600, Requests: corev1.ResourceList{"cpu": resource.MustParse("2")}}}
	if moved {
		account = append(account, usage.Mirror{Worker: "east", UID: "e", Seconds: 1800, Unknown: 900, Left: true,
			Requests: corev1.ResourceList{"cpu": resource.MustParse("2"), "nvidia.com/gpu": resource.MustParse("1")}})
	}
	return func(j *batchv1.Job) { hubstate.Set(j, hubstate.Changes{hubstate.Usage: account.String()}) }
}

// text writes a table down.
func (t UsageTable) text() string {
	var b strings.Builder
	fmt.Fprintln(&b, t.Of, t.Resources)
	rows := t.Rows
	if t.Total != nil {
		rows = append(rows, *t.Total)
	}
	for _, r := range rows {
		fmt.Fprintln(&b, strings.Trim(r.Namespace+"/"+r.Name, "/"), r.Cells, r.Cost)
	}
	return b.String()
}

func TestUsage(t *testing.T) {
	west := &v1alpha1.WorkerCluster{ObjectMeta: metav1.ObjectMeta{Name: "west"}}
	west.Spec.Cost = v1alpha1.Cost{"cpu": resource.MustParse("0.5")}
	jobs := []*batchv1.Job{job("a", used(true)), job("b", used(false), inNamespace("team-b")), job("c"), job("d", used(false), func(j *batchv1.Job) {
		complete(j)
		j.Status.Conditions[len(j.Status.Conditions)-1].LastTransitionTime = before(25 * time.Hour)
	})}
	page := NewUsage(jobs, []*v1alpha1.WorkerCluster{west}, "24h", now)
	for _, row := range []struct {
		table UsageTable
		want  string
	}{
		{page.ByNamespace, `Namespace [cpu (CPU-hours) nvidia.com/gpu (hours) pods (hours)]
team-a [{3.00 1.00 0.5} {0.5 0.5 0.25} {1.50 0.5 0.25}] 1.00
team-b [{2.00  } {0  } {1.00  }] 1.00
All [{5.00 1.00 0.5} {0.5 0.5 0.25} {2.50 0.5 0.25}] 2.00
`},
		{page.ByWorker, `Worker [cpu (CPU-hours) nvidia.com/gpu (hours) pods (hours)]
east [{1.00 1.00 0.5} {0.5 0.5 0.25} {0.5 0.5 0.25}] 
west [{4.00  } {0  } {2.00  }] 2.00
All [{5.00 1.00 0.5} {0.5 0.5 0.25} {2.50 0.5 0.25}] 2.00
`},
		{page.ByJob, `Job [cpu (CPU-hours) nvidia.com/gpu (hours) pods (hours)]
team-a/a [{3.00 1.00 0.5} {0.5 0.5 0.25} {1.50 0.5 0.25}] 1.00
team-b/b [{2.00  } {0  } {1.00  }] 1.00
`},
		{NewJobPage(JobInput{Job: jobs[1]}, now).Usage, "Worker [cpu (CPU-hours) pods (hours)]\nwest [{2.00  } {1.00  }] \n"},
	} {
		if diff := cmp.Diff(row.want, row.table.text()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.table.Of, diff)
		}
	}
	if page.Jobs != 2 {
		t.Errorf("%d Jobs", page.Jobs)
	}
	if week := NewUsage(jobs, nil, "nonsense", now); week.Jobs != 3 || !week.Sinces[1].Chosen || week.ByNamespace.Priced {
		t.Errorf("a week, without prices: %+v", week)
	}
}

// Of many Jobs, those that used the most are listed.
func TestUsageOfManyJobs(t *testing.T) {
	var jobs []*batchv1.Job
	for i := range maxListed + 2 {
		jobs = append(jobs, job(fmt.Sprintf("j%02d", i), used(i == maxListed+1)))
	}
	table := NewUsage(jobs, nil, "", now).ByJob
	if len(table.Rows) != maxListed || table.Rows[0].Name != "j21" || table.Rows[1].Name != "j00" {
		t.Errorf("%d rows, the first are %+v", len(table.Rows), table.Rows[:2])
	}
}
