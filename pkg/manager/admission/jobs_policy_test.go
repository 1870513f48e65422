package admission

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

const (
	selector = v1alpha1.AnnotationClusterSelector
	onLost   = v1alpha1.AnnotationOnClusterLost
	manager  = "system:serviceaccount:jobferry-system:jobferry-manager"
)

var dispatched = map[string]string{v1alpha1.LabelDispatch: "enabled"}

// kept gives a Job a placement in its status, and other conditions.
func kept(job runtime.Object, worker string, others ...batchv1.JobConditionType) runtime.Object {
	j := job.(*batchv1.Job)
	for _, other := range others {
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: other})
	}
	hubstate.Set(j, hubstate.Changes{hubstate.Cluster: worker, hubstate.MovedFrom: "a"})
	return j
}

func TestJobsPolicy(t *testing.T) {
	p := loadPolicy(t, "jobs-policy.yaml")
	ours := func(annotations ...string) runtime.Object {
		return newJob(v1alpha1.ManagedByDispatcher, annotations...)
	}
	rows := map[string]struct {
		request
		want string // part of the only message; empty: let through
	}{
		"plain":                      {request{object: ours()}, ""},
		"all that users may say":     {request{object: ours(selector, "pool=a", onLost, "Wait", "note", "x", v1alpha1.AnnotationMaxClusters, "3")}, ""},
		"bad selector":               {request{object: ours(selector, "a b")}, `cluster-selector: "a b" is not a label selector; set it to one such as`},
		"an empty value":             {request{object: ours(selector, "a=="), old: ours()}, ""},
		"bad change of the selector": {request{object: ours(selector, "=a"), old: ours(selector, "a")}, `"=a" is not a label selector`},
		"it was bad before":          {request{object: ours(selector, "=a"), old: ours(selector, "=a")}, ""},
		"bad on-cluster-lost":        {request{object: ours(onLost, "resume")}, `on-cluster-lost: "resume" is unknown; set it to Resume, Restart or Wait`},
		"moved through the status":   {request{object: kept(ours(), "east"), old: kept(ours(), "west"), subresource: "status"}, "only Jobferry sets, changes or removes jobferry.dev/Placed"},
		"placed through the status":  {request{object: kept(ours(), "east"), old: ours(), subresource: "status"}, "only Jobferry"},
		"placement taken off":        {request{object: ours(), old: kept(ours(), "east"), subresource: "status"}, "only Jobferry"},
		"placed by the manager":      {request{object: kept(ours(), "east"), old: ours(), user: manager, subresource: "status"}, ""},
		"another manager's name":     {request{object: kept(ours(), "east"), old: ours(), user: "system:serviceaccount:other:jobferry-manager", subresource: "status"}, "only Jobferry"},
		"another status":             {request{object: kept(ours(), "east", "Suspended"), old: kept(ours(), "east"), subresource: "status"}, ""},
		"somebody else's Job":        {request{object: kept(newJob("example.org/other", selector, "a b"), "east"), old: newJob("example.org/other", selector, "a b"), subresource: "status"}, ""},
		"other annotations":          {request{object: ours("jobferry.dev/x", "1")}, ""},
		"of a namespace dispatched":  {request{object: newJob("", selector, "a b"), namespace: dispatched}, "is not a label selector"},
		"of one that isn't":          {request{object: newJob("", selector, "a b"), namespace: map[string]string{v1alpha1.LabelDispatch: "no"}}, ""},
		"CronJob, its template":      {request{kind: "cronjobs", object: cron(newJob("", selector, "a b")), namespace: dispatched}, "is not a label selector"},
		"CronJob, not ours":          {request{kind: "cronjobs", object: cron(newJob("", selector, "a b"))}, ""},
		"CronJob, bad before":        {request{kind: "cronjobs", object: cron(newJob("", selector, "a b", "n", "x")), old: cron(newJob("", selector, "a b")), namespace: dispatched}, ""},
		"CronJob, made bad":          {request{kind: "cronjobs", object: cron(newJob("", onLost, "")), old: cron(newJob("")), namespace: dispatched}, `on-cluster-lost: "" is unknown`},
		"CronJob, its own annotations": {request{kind: "cronjobs", object: func() runtime.Object {
			c := cron(newJob(""))
			c.Annotations = map[string]string{selector: "a b"}
			return c
		}(), namespace: dispatched}, ""},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			got := p.denied(row.request)
			if row.want == "" && len(got) != 0 || row.want != "" && (len(got) != 1 || !strings.Contains(got[0], row.want)) {
				t.Errorf("denied %q, want %q", got, row.want)
			}
		})
	}
}

// The policy's regular expression is the grammar that the manager reads selectors by.
func TestSelectorGrammar(t *testing.T) {
	p := loadPolicy(t, "jobs-policy.yaml")
	check := func(t interface{ Fatalf(string, ...any) }, text string) {
		_, err := labels.Parse(text)
		refused := len(p.denied(request{object: newJob(v1alpha1.ManagedByDispatcher, selector, text)})) > 0
		if refused != (err != nil) && !beyondRegexp(text, err) {
			t.Fatalf("%q: the policy refuses it: %t; the manager: %v", text, refused, err)
		}
	}
	for _, text := range []string{
		"", " ", "a", "!a", "! a", "a,b", "a,,b", "a,", ",a", "a=", "a==b", "a!=b", "a=!b", "a = b", "a in (b)", "a in(b)", "ain (b)",
		"a in ()", "a in (,)", "a in (b,,c)", "a notin ( b , c )", "a in (b c)", "a in b", "!a=b", "a>1", "a > 01", "a<x", "a>", "a>=1", "a=>1",
		"in", "in in (in)", "notin=in", "x/y=z", "x.y/z", "X/y", "/y", "x/", "x/y/z", "a=_b", "a=b_", "a=b.c-d_e", "a=é", "a\t=\nb", "a=b;c", "(a)",
		"a=" + strings.Repeat("v", 63), "a=" + strings.Repeat("v", 64), strings.Repeat("k", 63), strings.Repeat("k", 64),
		"n > 99999999999999999999", strings.Repeat("p", 260) + "/x", "region=eu,gpu in (a100,h100),!spot,nodes > 3",
	} {
		check(t, text)
	}
	part := rapid.SampledFrom([]string{"a", "b-1", "x.io/", "/", "=", "==", "!=", "!", "in", "notin", " ", "\t", "(", ")", ",", "<", ">", "7", "_", ".", "A"})
	rapid.Check(t, func(t *rapid.T) {
		check(t, strings.Join(rapid.SliceOfN(part, 0, 12).Draw(t, "parts"), ""))
	})
}

// beyondRegexp says whether only a length or a size is wrong, which the policy leaves to the
// manager.
func beyondRegexp(text string, err error) bool {
	return err != nil && (errors.Is(err, strconv.ErrRange) || strings.Contains(err.Error(), "must be no more than 253") ||
		strings.Contains(err.Error(), "must be an integer") && strings.ContainsAny(text, "0123456789"))
}
