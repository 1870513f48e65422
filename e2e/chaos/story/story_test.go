package story

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/mirror/shards"
)

func tell(t *testing.T, seed uint64, only ...string) []Story {
	t.Helper()
	stories, err := Make(rand.New(rand.NewPCG(seed, 0)), []string{"ns", "other"}, 400, 4*time.Minute, only...)
	if err != nil {
		t.Fatal(err)
	}
	return stories
}

func TestASeedTellsTheSameStories(t *testing.T) {
	if !reflect.DeepEqual(tell(t, 1), tell(t, 1)) {
		t.Error("the same seed told others")
	}
	if reflect.DeepEqual(tell(t, 1), tell(t, 2)) {
		t.Error("another seed told the same")
	}
}

func TestAllKindsAreTold(t *testing.T) {
	told, names := map[string]bool{}, map[string]bool{}
	last := time.Duration(0)
	for n, s := range tell(t, 1) {
		told[s.Kind], names[s.Name] = true, true
		if s.At < last || s.At > 4*time.Minute {
			t.Errorf("%s is submitted at %s, after one at %s", s.Name, s.At, last)
		}
		last = s.At
		if s.Job.Name != s.Name || s.Job.Namespace != []string{"ns", "other"}[n%2] || !strings.HasPrefix(s.Name, s.Kind) {
			t.Errorf("%s: Job %s/%s", s.Name, s.Job.Namespace, s.Job.Name)
		}
	}
	if len(told) != len(kinds) || len(names) != 400 {
		t.Errorf("%d kinds of %d, %d names", len(told), len(kinds), len(names))
	}
	if _, err := Make(rand.New(rand.NewPCG(1, 0)), []string{"ns"}, 1, 0, "sonnet"); err == nil || !strings.Contains(err.Error(), `no kind of Job "sonnet"; there are single, `) {
		t.Errorf("%v", err)
	}
	for _, s := range tell(t, 1, "halted") {
		if s.Kind != "halted" || !s.Has(Suspend) || s.Has(Delete) {
			t.Errorf("told %+v", s)
		}
	}
}

func TestStartsOver(t *testing.T) {
	for kind, want := range map[string]bool{"restarts": true, "queue": true, "indexed": false, "waits": false} {
		for _, s := range tell(t, 1, kind) {
			if s.StartsOver() != want {
				t.Errorf("%s: %t", s.Name, !want)
			}
		}
	}
}

// About a tenth of all Jobs may run on several workers, and they ask for more than one has room
// for.
func TestDivided(t *testing.T) {
	divided := 0
	for _, s := range tell(t, 1) {
		if s.Divided() != strings.HasPrefix(s.Kind, "divided") {
			t.Errorf("%s: %t", s.Name, s.Divided())
		}
		if !s.Divided() {
			continue
		}
		divided++
		if limit, err := shards.MaxClusters(s.Job); err != nil || limit < 2 {
			t.Errorf("%s may run on %d workers: %v", s.Name, limit, err)
		}
		if *s.Job.Spec.Parallelism != wide || s.Job.Spec.Template.Spec.Containers[0].Resources.Requests.Cpu().String() != cpuOfWide {
			t.Errorf("%s: %d Pods of %s", s.Name, *s.Job.Spec.Parallelism, s.Job.Spec.Template.Spec.Containers[0].Resources.Requests.Cpu())
		}
	}
	if divided < 28 || divided > 56 {
		t.Errorf("%d of 400", divided)
	}
}

// About a tenth of all Jobs are in groups, most of which have several.
func TestGroups(t *testing.T) {
	grouped, groups := 0, map[string]int{}
	for _, s := range tell(t, 1) {
		if name := s.Group(); name != "" {
			grouped++
			groups[name]++
			if s.Divided() || s.Waits() {
				t.Errorf("%s is in a group", s.Name)
			}
		}
	}
	if grouped < 28 || grouped > 56 || len(groups) > grouped/2 {
		t.Errorf("%d of 400, in %d groups", grouped, len(groups))
	}
}

func TestDifferences(t *testing.T) {
	job := func(succeeded, failed int32, failedIndexes string, condition batchv1.JobConditionType, reason string) *batchv1.Job {
		return &batchv1.Job{
			Spec: batchv1.JobSpec{Completions: ptr.To[int32](3)},
			Status: batchv1.JobStatus{
				Succeeded: succeeded, Failed: failed, FailedIndexes: &failedIndexes,
				Conditions: []batchv1.JobCondition{{Type: condition, Status: corev1.ConditionTrue, Reason: reason}},
			},
		}
	}
	moved, disturbed, interrupted := Circumstances{Moved: true}, Circumstances{Disturbed: true}, Circumstances{Interrupted: true}
	retried := End{Condition: batchv1.JobComplete, All: true, Failed: 1}
	first := retried
	first.FailsFirst = true
	elastic := End{Condition: batchv1.JobComplete, All: true, Elastic: true}
	broken := End{Condition: batchv1.JobFailed, Reason: "FailedIndexes", Failed: 1, Succeeded: 2, FailedIndexes: "1"}
	for name, row := range map[string]struct {
		end  End
		job  *batchv1.Job
		in   Circumstances
		want string
	}{
		"as it should":              {retried, job(3, 1, "", batchv1.JobComplete, ""), Circumstances{}, ""},
		"not all":                   {retried, job(2, 1, "", batchv1.JobComplete, ""), Circumstances{}, "succeeded is 2, want 3"},
		"failed more often":         {retried, job(3, 2, "", batchv1.JobComplete, ""), Circumstances{}, "failed is 2, want 1"},
		"the same, but moved":       {retried, job(3, 2, "", batchv1.JobComplete, ""), moved, ""},
		"failed less often":         {retried, job(3, 0, "", batchv1.JobComplete, ""), moved, "failed is 0, want 1"},
		"failed, but interrupted":   {retried, job(3, 0, "", batchv1.JobComplete, ""), interrupted, "failed is 0, want 1"},
		"the first was stopped":     {first, job(3, 0, "", batchv1.JobComplete, ""), interrupted, ""},
		"another end":               {retried, job(3, 1, "", batchv1.JobFailed, "Why"), Circumstances{}, `it ended as "Failed" (Why), want Complete ()`},
		"elastic, too late":         {elastic, job(2, 0, "", batchv1.JobComplete, ""), disturbed, ""},
		"elastic, in time":          {elastic, job(2, 0, "", batchv1.JobComplete, ""), Circumstances{}, "succeeded is 2, want 3"},
		"failed indexes":            {broken, job(2, 1, "1", batchv1.JobFailed, "FailedIndexes"), Circumstances{}, ""},
		"other failed indexes":      {broken, job(2, 1, "2", batchv1.JobFailed, "FailedIndexes"), Circumstances{}, "failedIndexes is 2, want 1"},
		"another reason":            {broken, job(2, 1, "1", batchv1.JobFailed, "Bad"), Circumstances{}, `it ended as "Failed" (Bad), want Failed (FailedIndexes)`},
		"too few":                   {broken, job(1, 1, "1", batchv1.JobFailed, "FailedIndexes"), moved, "succeeded is 1, want 2 or more"},
		"no matter, it was deleted": {End{Gone: true}, job(1, 1, "1", batchv1.JobFailed, "Any"), Circumstances{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(row.end.Differences(row.job, row.in), "; "); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}
