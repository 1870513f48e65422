package group

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/placement"
	"github.com/jobferry/jobferry/pkg/util/costtest"
	"github.com/jobferry/jobferry/pkg/util/decoded"
)

func TestOf(t *testing.T) {
	owned := func(controller bool, kind, version string) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", OwnerReferences: []metav1.OwnerReference{
			{Kind: kind, APIVersion: version, Name: "pair", UID: "1", Controller: &controller},
		}}}
	}
	named := func(job *batchv1.Job, name string) *batchv1.Job {
		job.Annotations = map[string]string{v1alpha1.AnnotationGroup: name}
		return job
	}
	ofLong := owned(true, "JobSet", "jobset.x-k8s.io/v1alpha2")
	ofLong.OwnerReferences[0].Name = strings.Repeat("x", 2<<10)
	set := ID{Namespace: "team", Name: "pair", Owner: "1", JobSet: true}
	for what, c := range map[string]struct {
		job   *batchv1.Job
		want  ID
		wrong bool
	}{
		"of a JobSet":            {owned(true, "JobSet", "jobset.x-k8s.io/v1alpha2"), set, false},
		"of its next version":    {owned(true, "JobSet", "jobset.x-k8s.io/v1"), set, false},
		"owned, not controlled":  {owned(false, "JobSet", "jobset.x-k8s.io/v1alpha2"), ID{}, false},
		"of one of a long name":  {ofLong, ID{}, false},
		"of another group's":     {owned(true, "JobSet", "example.com/v1"), ID{}, false},
		"of a kind that's added": {owned(true, "Batch", "example.com/v1"), ID{Namespace: "team", Name: "pair", Owner: "1"}, false},
		"named":                  {named(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team"}}, "steps"), ID{Namespace: "team", Name: "steps"}, false},
		"named, of a JobSet":     {named(owned(true, "JobSet", "jobset.x-k8s.io/v1alpha2"), "steps"), ID{Namespace: "team", Name: "steps"}, false},
		"empty":                  {named(&batchv1.Job{}, ""), ID{}, true},
		"too long":               {named(&batchv1.Job{}, strings.Repeat("x", 64)), ID{}, true},
	} {
		if got, err := (Kinds{JobSetKind, "Batch.example.com"}).Of(c.job); got != c.want || (err != nil) != c.wrong {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
	for kind, valid := range map[string]bool{JobSetKind: true, "JobSet": false, "": false, "JobSet.": false, ".x": false, "A.B": false} {
		if err := (Kinds{kind}).Validate(); (err == nil) != valid {
			t.Errorf("%q: %v", kind, err)
		}
	}
}

// An annotation may have 256 KiB, and is read for each event of its Job: of one that can't be a
// name, as little is looked at as of one that is a byte too long.
func TestLongNamesOfGroups(t *testing.T) {
	job := func(bytes int) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationGroup: strings.Repeat("x", bytes)}}}
	}
	took := func(of *batchv1.Job) (least time.Duration) {
		least = time.Hour
		for range 20 {
			began := time.Now()
			_, _ = Kinds{}.Of(of)
			least = min(least, time.Since(began))
		}
		return least
	}
	if few, many := took(job(64)), took(job(256<<10)); many > 1000*few { // 7,000 times, if all is looked at
		t.Errorf("it takes %s, and %s of 64 bytes", many, few)
	}
}

// However its Jobs change, the counts are those of the Jobs that there are.
func TestMembersCount(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	workers := []string{"", "a", "b", "c"}
	for range 200 {
		var m Members
		all := map[int]Member{}
		for step := range 100 {
			name := r.IntN(6)
			var next Member
			if r.IntN(4) > 0 {
				next = Member{On: workers[r.IntN(4)], Leaves: workers[r.IntN(4)], Finished: r.IntN(3) == 0, Since: time.Unix(int64(step), 0)}
			}
			m.Replace(all[name], next)
			if delete(all, name); next != (Member{}) {
				all[name] = next
			}
			check(t, &m, all)
		}
	}
}

func check(t *testing.T, m *Members, all map[int]Member) {
	t.Helper()
	over := true
	var newest Member
	for _, member := range all {
		if !member.Finished && (member.On != "" || member.Leaves != "") {
			over = false
		}
		if !member.Finished && member.On != "" && (newest.On == "" || member.Since.After(newest.Since)) {
			newest = member
		}
	}
	if m.IsOver() != over {
		t.Fatalf("over: %v, of %v", m.IsOver(), all)
	}
	if !slices.IsSortedFunc(m.order, m.compare) {
		t.Fatalf("not in order: %v", m.order)
	}
	places := m.Places()
	switch {
	case newest.On != "" && (len(places) == 0 || !places[0].Runs):
		t.Fatalf("places %v, but a Job runs in %s", places, newest.On)
	case newest.On == "" && len(places) > 0 && places[0].Runs:
		t.Fatalf("places %v, and nothing runs", places)
	}
	for name, own := range all {
		var others []string
		for other, member := range all {
			if other == name || member.Finished {
				continue
			}
			for _, worker := range []string{member.On, member.Leaves} {
				if worker != "" && worker != own.On {
					others = append(others, worker)
				}
			}
		}
		if at := m.Elsewhere(own); (at != "") != (len(others) > 0) || at != "" && !slices.Contains(others, at) {
			t.Fatalf("elsewhere than %+v: %q, want one of %v", own, at, others)
		}
	}
}

// A tenant's group has had Jobs in very many workers: a change of one has not all of these sorted,
// as the store's lock is held meanwhile.
func TestAGroupInManyWorkers(t *testing.T) {
	var m Members
	for i := range 1000 {
		m.Replace(Member{}, Member{On: fmt.Sprint("worker-", i), Since: time.Unix(int64(i), 0)})
	}
	is := Member{On: "worker-5", Since: time.Unix(5, 0)}
	cost := costtest.Of(func() {
		for i := range 100 {
			next := Member{On: fmt.Sprint("worker-", i), Since: time.Unix(int64(2000+i), 0), Finished: i%2 == 0}
			m.Replace(is, next)
			is = next
		}
	})
	if cost > 100<<10 {
		t.Errorf("100 changes cost %d KiB", cost>>10)
	}
}

// The newest placement of a Job that runs counts.
func TestPlaces(t *testing.T) {
	at := func(seconds int64) time.Time { return time.Unix(seconds, 0) }
	for what, c := range map[string]struct {
		jobs []Member
		want string
	}{
		"none":                      {nil, "[]"},
		"a move":                    {[]Member{{On: "a", Since: at(1)}, {On: "a", Since: at(1)}, {On: "b", Since: at(2), Leaves: "a"}}, "[{b true} {a true}]"},
		"finished ones come last":   {[]Member{{On: "a", Since: at(9), Finished: true}, {On: "b", Since: at(2)}}, "[{b true} {a false}]"},
		"the newest finished":       {[]Member{{On: "a", Since: at(9), Finished: true}, {On: "b", Since: at(2), Finished: true}}, "[{a false} {b false}]"},
		"in the same second":        {[]Member{{On: "a", Since: at(1)}, {On: "b", Since: at(1)}}, "[{b true} {a true}]"},
		"leaving isn't being there": {[]Member{{Leaves: "a"}}, "[]"},
	} {
		for range 10 {
			var m Members
			for i := range c.jobs {
				m.Replace(Member{}, c.jobs[i])
			}
			if got := fmt.Sprint(m.Places()); got != c.want {
				t.Errorf("%s: %s, want %s", what, got, c.want)
			}
		}
	}
}

// A tenant has very many large Jobs in a group, each unlike the others: little is kept of them, and
// what they request.
func TestKinOfLargeJobsTakeLittle(t *testing.T) {
	var all Kinship
	for i := range 300 {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprint("job-", i), Annotations: map[string]string{
			v1alpha1.AnnotationClusterSelector: "tier=gold", "notes": strings.Repeat("x", 10_000),
		}}}
		job.Spec.Parallelism = ptr.To[int32](3)
		job.Spec.Template.Labels = map[string]string{"n": fmt.Sprint(i)}
		job.Spec.Template.Spec.Containers = []corev1.Container{{
			Env:       slices.Repeat([]corev1.EnvVar{{Name: "a"}}, 2000),
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}},
		}}
		all.Add(job, decoded.Size(job), types.NamespacedName{Namespace: "team", Name: job.Name})
	}
	kept := int64(0)
	kin := all.Sorted()
	for i := range kin {
		job := kin[i].Job
		kept += decoded.Size(job)
		if requests := placement.RequestsOf(&job.Spec.Template.Spec); len(requests.List()) == 0 || !requests.List()[corev1.ResourceCPU].Equal(resource.MustParse("2")) || placement.PodsWanted(job) != 3 ||
			job.Annotations[v1alpha1.AnnotationClusterSelector] != "tier=gold" {
			t.Fatalf("%s: %+v", job.Name, job)
		}
	}
	if len(kin) != 300 || kept > maxWhole+300*16<<10 {
		t.Errorf("%d bytes are kept of %d Jobs", kept, len(kin))
	}
}

func TestJobsOfAJobSet(t *testing.T) {
	sent := `{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","metadata":{"name":"pair","namespace":"team","uid":"1"},"spec":{"replicatedJobs":[
		{"name":"driver","template":{"spec":{"parallelism":1,"completions":1,"template":{"spec":{"containers":[{"name":"main"}]}}}}},
		{"name":"workers","replicas":3,"dependsOn":[{"name":"driver","status":"Ready"}],"template":{"metadata":{"annotations":{"a":"b"}},"spec":{"parallelism":4}}}]}}`
	set := NewJobSet(ID{Namespace: "team", Name: "pair"})
	if err := json.Unmarshal([]byte(sent), set); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, kin := range set.Jobs(func(key types.NamespacedName) bool { return key.Name == "pair-workers-1" }) {
		got = append(got, fmt.Sprintf("%v %d %s %v", kin.Keys, *kin.Job.Spec.Parallelism, kin.Job.Namespace, kin.Job.Annotations))
	}
	want := "[[team/pair-driver-0] 1 team map[] [team/pair-workers-0 team/pair-workers-2] 4 team map[a:b]]"
	if fmt.Sprint(got) != want || set.UID != "1" {
		t.Errorf("%v, want %s; UID %s", got, want, set.UID)
	}
	set.replicated[1].Replicas = ptr.To[int32](2_000_000_000)
	if n := len(set.Jobs(func(types.NamespacedName) bool { return false })[1].Keys); n != maxReplicas-1 {
		t.Errorf("%d names", n)
	}
	set.replicated[1].Replicas = ptr.To[int32](-1)
	if all := set.Jobs(func(types.NamespacedName) bool { return false }); len(all) != 1 {
		t.Errorf("%d kinds", len(all))
	}
	if job := set.Jobs(func(types.NamespacedName) bool { return false })[0].Job; job.Labels[mirror.LabelReplicatedJob] != "driver" || metav1.GetControllerOf(job).UID != "1" {
		t.Errorf("not as JobSet makes it: %+v", job.ObjectMeta)
	}
	if err := set.UnmarshalJSON([]byte(`{"spec": 1}`)); err == nil {
		t.Error("no error")
	}
}

// A JobSet that would take much memory, or very long to read, isn't read.
func TestLargeJobSets(t *testing.T) {
	containers := strings.Repeat(`{"name":"a"},`, 100_000)
	for what, sent := range map[string]string{
		"very many containers": `{"spec":{"replicatedJobs":[{"template":{"spec":{"template":{"spec":{"containers":[` + containers + `{}]}}}}}]}}`,
		"nulls":                `{"spec":{"replicatedJobs":[` + strings.Repeat("null,", 100_000) + `{}]}}`,
		"a costly quantity": `{"spec":{"replicatedJobs":[{"template":{"spec":{"template":{"spec":{"containers":[
			{"resources":{"requests":{"cpu":"1e100000000"}}}]}}}}}]}}`,
	} {
		if err := NewJobSet(ID{}).UnmarshalJSON([]byte(sent)); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A name that no Job can have isn't made up for each replica.
func TestJobSetsOfLongNames(t *testing.T) {
	set := NewJobSet(ID{Name: "pair"})
	if err := set.UnmarshalJSON([]byte(`{"spec":{"replicatedJobs":[{"name":"` + strings.Repeat("a", 1<<10) + `","replicas":10000},{"name":"b"}]}}`)); err != nil {
		t.Fatal(err)
	}
	kin := set.Jobs(func(types.NamespacedName) bool { return false })
	if len(kin) != 1 || len(kin[0].Keys) != 1 {
		t.Errorf("%d groups of Jobs are expected", len(kin))
	}
}

func FuzzJobSet(f *testing.F) {
	f.Add([]byte(`{"spec":{"replicatedJobs":[{"name":"a","replicas":9}]}}`))
	f.Fuzz(func(_ *testing.T, sent []byte) {
		set := NewJobSet(ID{Name: "pair"})
		if set.UnmarshalJSON(sent) == nil {
			set.Jobs(func(types.NamespacedName) bool { return false })
		}
	})
}
