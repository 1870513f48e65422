package worker

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/worker/plan"
)

// gang makes the Job a gang of that size; 0: as many as run at once.
func gang(minCount int32) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		policy := &schedulingv1alpha3.WorkloadPodGroupGangSchedulingPolicy{}
		if minCount > 0 {
			policy.MinCount = &minCount
		}
		j.Spec.Scheduling = &batchv1.JobSchedulingConfiguration{
			SchedulingPolicy: &schedulingv1alpha3.WorkloadPodGroupSchedulingPolicy{Gang: policy},
		}
	}
}

// grouping returns the only Workload and the only PodGroup, nil if there is none.
func (c *cluster) grouping() (*schedulingv1beta1.Workload, *schedulingv1beta1.PodGroup) {
	c.t.Helper()
	var workloads schedulingv1beta1.WorkloadList
	var groups schedulingv1beta1.PodGroupList
	for _, list := range []client.ObjectList{&workloads, &groups} {
		if err := c.api.List(c.t.Context(), list); err != nil {
			c.t.Fatal(err)
		}
	}
	switch {
	case len(workloads.Items) > 1 || len(groups.Items) > 1:
		c.t.Fatalf("%d Workloads and %d PodGroups", len(workloads.Items), len(groups.Items))
	case len(workloads.Items) == 0:
		return nil, nil
	case len(groups.Items) == 0:
		return &workloads.Items[0], nil
	}
	return &workloads.Items[0], &groups.Items[0]
}

// sizes are those of the gang in the Workload and in the PodGroup.
func (c *cluster) sizes() [2]int32 {
	c.t.Helper()
	w, g := c.grouping()
	return [2]int32{*plan.MinCount(&w.Spec.PodGroupTemplates[0].SchedulingPolicy), *plan.MinCount(&g.Spec.SchedulingPolicy)}
}

func TestPodsOfAGangJoinItsPodGroup(t *testing.T) {
	c := newCluster(t, Options{}, aJob(gang(0)))
	c.mustSync()
	w, g := c.grouping()
	if c.sizes() != [2]int32{2, 2} || !metav1.IsControlledBy(w, c.job()) || !metav1.IsControlledBy(g, c.job()) {
		t.Errorf("got %+v\nand %+v", w, g)
	}
	if ref := g.Spec.WorkloadRef; ref.WorkloadName != w.Name || ref.TemplateName != w.Spec.PodGroupTemplates[0].Name {
		t.Errorf("the PodGroup is of %+v", ref)
	}
	if order := []string{"create " + w.Name, "create " + g.Name}; !slices.Equal(c.writes[:2], order) {
		t.Errorf("wrote %v, want %v first", c.writes, order)
	}
	pods := c.pods()
	if len(pods) != 2 {
		t.Fatalf("%d Pods", len(pods))
	}
	for _, p := range pods {
		joined := p.Spec.SchedulingGroup != nil && *p.Spec.SchedulingGroup.PodGroupName == g.Name
		if !joined || len(p.OwnerReferences) != 1 || !metav1.IsControlledBy(&p, c.job()) {
			t.Errorf("Pod %s has %+v, and the owners %+v", p.Name, p.Spec.SchedulingGroup, p.OwnerReferences)
		}
	}
	if c.eventCount("WorkloadCreated") != 1 || c.eventCount("PodGroupCreated") != 1 {
		t.Error("the events of the built-in are missing")
	}
}

// What the policy says reaches the objects.
func TestSchedulingOfAWorkload(t *testing.T) {
	all := &schedulingv1alpha3.WorkloadPodGroupDisruptionMode{All: &schedulingv1alpha3.WorkloadPodGroupAllDisruptionMode{}}
	c := newCluster(t, Options{}, aJob(gang(1), func(j *batchv1.Job) {
		j.Spec.Template.Spec.PriorityClassName = "high"
		j.Spec.Scheduling.DisruptionMode = all
		j.Spec.Scheduling.SchedulingConstraints = &schedulingv1alpha3.WorkloadPodGroupSchedulingConstraints{
			Topology: []schedulingv1alpha3.TopologyConstraint{{Key: "rack"}},
		}
		j.Spec.Scheduling.ResourceClaims = []schedulingv1alpha3.WorkloadPodGroupResourceClaim{{Name: "gpu", ResourceClaimName: ptr.To("shared")}}
	}))
	c.mustSync()
	_, g := c.grouping()
	s := g.Spec
	if c.sizes() != [2]int32{1, 1} || s.PriorityClassName != "high" || s.DisruptionMode.All == nil ||
		s.SchedulingConstraints.Topology[0].Key != "rack" || *s.ResourceClaims[0].ResourceClaimName != "shared" {
		t.Errorf("got %+v", s)
	}
}

// A suspended Job has its objects before it has Pods, so that others can plan with them. They stay
// when it is resumed.
func TestSuspendedGang(t *testing.T) {
	c := newCluster(t, Options{}, aJob(gang(0), func(j *batchv1.Job) { j.Generation, j.Spec.Suspend = 1, ptr.To(true) }))
	c.mustSync()
	w, g := c.grouping()
	if w == nil || g == nil || len(c.pods()) > 0 {
		t.Fatalf("made %v and %v, and %d Pods", w, g, len(c.pods()))
	}
	job := c.job()
	job.Generation++
	job.Spec.Suspend = ptr.To(false)
	if err := c.api.Update(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	c.mustSync()
	if n := c.eventCount("WorkloadCreated") + c.eventCount("PodGroupCreated"); n != 2 {
		t.Errorf("made %d objects", n)
	}
	pods := c.pods()
	if len(pods) != 2 {
		t.Fatalf("%d Pods", len(pods))
	}
	for _, p := range pods {
		if p.Spec.SchedulingGroup == nil || *p.Spec.SchedulingGroup.PodGroupName != g.Name {
			t.Errorf("Pod %s has %+v", p.Name, p.Spec.SchedulingGroup)
		}
	}
}

// A user's own PodGroup is left alone.
func TestJobsWithoutAPodGroup(t *testing.T) {
	for name, edit := range map[string]func(*batchv1.Job){
		"no scheduling": func(*batchv1.Job) {},
		"its own PodGroup": func(j *batchv1.Job) {
			gang(0)(j)
			j.Spec.Template.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To("mine")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, Options{}, aJob(edit))
			c.mustSync()
			if w, g := c.grouping(); w != nil || g != nil {
				t.Errorf("made %v and %v", w, g)
			}
			for _, p := range c.pods() {
				if group := p.Spec.SchedulingGroup; group != nil && *group.PodGroupName != "mine" {
					t.Errorf("a Pod joins %s", *group.PodGroupName)
				}
			}
		})
	}
}

// The size follows the Job, also when that creates no Pods.
func TestGangIsResized(t *testing.T) {
	c := newCluster(t, Options{}, aJob(gang(0)))
	c.mustSync()
	for _, parallelism := range []int32{3, 1} {
		job := c.job()
		job.Generation++
		job.Spec.Parallelism = &parallelism
		if err := c.api.Update(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		c.mustSync()
		if got := c.sizes(); got != [2]int32{parallelism, parallelism} {
			t.Errorf("sizes %v, want %d", got, parallelism)
		}
	}
	before := c.count("patch")
	c.mustSync()
	if n := c.count("patch") - before; n > 0 {
		t.Errorf("then %d more patches", n)
	}
}

// Where no PodGroup can be made, the Job waits, and says why: its Pods must not be scheduled one by
// one.
func TestNoPodsWithoutPodGroup(t *testing.T) {
	theirs := &schedulingv1beta1.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: workloadName(t)}}
	for name, row := range map[string]struct {
		objects []client.Object
		kind    string // can't be created
		want    string
	}{
		"the API isn't served": {nil, "Workload", "doesn't serve scheduling.k8s.io/v1beta1: switch on its feature gate GenericWorkload"},
		"only half of it is":   {nil, "PodGroup", "doesn't serve scheduling.k8s.io/v1beta1"},
		"another's Workload":   {[]client.Object{theirs}, "", theirs.Name + " exists, and isn't of this Job: delete it"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, Options{}, append(row.objects, aJob(gang(0)))...)
			c.refuse = func(verb string, obj client.Object) error {
				kind := reflect.TypeOf(obj).Elem().Name()
				if verb == "create" && kind == row.kind {
					return &meta.NoKindMatchError{GroupKind: schedulingv1beta1.SchemeGroupVersion.WithKind(kind).GroupKind()}
				}
				return nil
			}
			_, err := c.sync()
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("the error is %v, want %q", err, row.want)
			}
			if n := len(c.pods()); n > 0 || c.job().Status.Active > 0 {
				t.Errorf("%d Pods, status %+v", n, c.job().Status)
			}
			if c.eventCount("FailedWorkloadCreate")+c.eventCount("FailedPodGroupCreate") != 1 {
				t.Error("no event, or several")
			}
		})
	}
}

func workloadName(t *testing.T) string {
	w, err := plan.Workload(aJob(gang(0)))
	if err != nil {
		t.Fatal(err)
	}
	return w.Name
}

// What this controller doesn't do for the Jobs of another one, it says.
func TestDelegatedPodGroup(t *testing.T) {
	c := newCluster(t, Options{}, aJob(func(j *batchv1.Job) {
		j.Annotations = map[string]string{plan.AnnotationGroupTemplate: "workers"}
		j.OwnerReferences = []metav1.OwnerReference{{APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet", Name: "set", Controller: ptr.To(true)}}
	}))
	c.mustSync()
	if len(c.pods()) != 2 || c.eventCount("PodGroupNotCreated") != 1 {
		t.Errorf("%d Pods, %d events", len(c.pods()), c.eventCount("PodGroupNotCreated"))
	}
}
