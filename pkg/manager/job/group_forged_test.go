package job

import (
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/group"
	"github.com/jobferry/jobferry/pkg/manager/line"
	"github.com/jobferry/jobferry/pkg/util/costtest"
)

// The Jobs of a group are placed on very many workers that there aren't, or on one with a long
// name. Their group is where it's placed in truth.
func TestForgedPlacementsOfAGroup(t *testing.T) {
	const jobs = 3000
	s := newStore(line.NewRuntimes())
	s.isRegistered = func(worker string) bool { return worker == "real" }
	inGroup := func(i int, name, worker string) *batchv1.Job {
		job := onWorker(fmt.Sprint("job-", i), "")
		job.Annotations = map[string]string{v1alpha1.AnnotationGroup: name}
		hubstate.Set(job, hubstate.Changes{hubstate.Cluster: worker, hubstate.MovedFrom: worker + "-before"})
		return job
	}
	for i := range jobs {
		s.observe(inGroup(i, "many", fmt.Sprint("forged-", i)), noon)
	}
	last := inGroup(jobs, "many", "real")
	if cost := costtest.Of(func() { s.observe(last, noon) }); cost > 100<<10 {
		t.Errorf("one more Job of the group costs %d KiB", cost>>10)
	}
	of := group.ID{Namespace: "team", Name: "many"}
	isThere := false
	for _, place := range s.placesOf(of) {
		isThere = isThere || place.Worker == "real" && place.Runs
	}
	if n := len(s.placesOf(of)); n > maxForged+1 || !isThere {
		t.Errorf("the group is in %d workers, in the real one: %t", n, isThere)
	}
	before := costtest.Heap()
	for i := range 40 {
		s.observe(inGroup(jobs+1+i, fmt.Sprint("long-", i), fmt.Sprint(i, strings.Repeat("a", 200_000))), noon)
	}
	if held := costtest.Heap() - before; held > 2*maxNames {
		t.Errorf("%d KiB are held of long names", held>>10)
	}
	for key, r := range s.records {
		s.forget(key, r.id)
	}
	if len(s.groups.byID) > 0 {
		t.Errorf("%d groups are left", len(s.groups.byID))
	}
}
