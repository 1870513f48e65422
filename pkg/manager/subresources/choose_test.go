package subresources

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/util/apistatus"
	"github.com/jobferry/jobferry/pkg/util/costtest"
)

func born(minute int) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.CreationTimestamp = metav1.Time{Time: time.Unix(int64(minute)*60, 0)} }
}

func phase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

func leaving(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }

func TestRank(t *testing.T) {
	rows := map[string]struct {
		rank          rank
		winner, loser *corev1.Pod
	}{
		"log: the newest":                {forLog, pod("a", born(2)), pod("b", born(1))},
		"log: not one that hasn't begun": {forLog, pod("a", born(1)), pod("b", born(2), phase(corev1.PodPending))},
		"log: an ended one counts":       {forLog, pod("a", born(2), phase(corev1.PodFailed)), pod("b", born(1))},
		"log: the name decides":          {forLog, pod("b", born(1)), pod("a", born(1))},
		"exec: a running one":            {forExec, pod("a", born(1)), pod("b", born(2), phase(corev1.PodSucceeded))},
		"exec: one that stays":           {forExec, pod("a", born(1)), pod("b", born(2), leaving)},
		"exec: the newest":               {forExec, pod("a", born(2)), pod("b", born(1))},
	}
	for name, row := range rows {
		if !row.rank.better(row.winner, row.loser) || row.rank.better(row.loser, row.winner) {
			t.Errorf("%s: %s doesn't win", name, row.winner.Name)
		}
	}
}

func TestContainerOf(t *testing.T) {
	two := func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "side"}) }
	initial := func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{Name: "first"}} }
	byDefault := func(name string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Annotations = map[string]string{defaultContainer: name} }
	}
	rows := map[string]struct {
		pod         *corev1.Pod
		asked, want string
		error       string
	}{
		"the only one":               {pod: pod("p"), want: "main"},
		"the only one, but initial":  {pod: pod("p", initial), want: "main"},
		"by name":                    {pod: pod("p", two, initial), asked: "first", want: "first"},
		"the default":                {pod: pod("p", two, byDefault("side")), want: "side"},
		"a default that isn't there": {pod: pod("p", two, byDefault("gone")), error: "name one of main, side"},
		"one of several":             {pod: pod("p", two), error: `Pod "p" has several, name one of main, side`},
		"a wrong name":               {pod: pod("p", initial), asked: "x", error: `Pod "p" has no "x", but first, main`},
	}
	for name, row := range rows {
		got, err := containerOf(row.pod, row.asked)
		if err == nil && got.Name != row.want || (err == nil) != (row.error == "") || err != nil && !strings.Contains(err.Error(), row.error) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestWantedSelector(t *testing.T) {
	w, err := parsePodChoice(url.Values{"index": {"007"}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := selectorOf(mirrorJob())
	got = w.narrow(got)
	if want := "batch.kubernetes.io/controller-uid=mirror-uid,batch.kubernetes.io/job-completion-index=7"; err != nil || got != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	bare := mirrorJob()
	bare.Spec.Selector = nil
	if got, err := selectorOf(bare); err == nil {
		t.Errorf("no selector would select everything: %q", got)
	}
}

// TestSelectorsOfAWorkerAreCheap: a worker's API server says that a mirror selects by many values,
// or by a long key, and all are invalid.
func TestSelectorsOfAWorkerAreCheap(t *testing.T) {
	values := func(n int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprintf("-%x", i))
		}
		return all
	}
	const most = 16 << 20
	for _, expression := range []metav1.LabelSelectorRequirement{
		{Key: "a", Operator: metav1.LabelSelectorOpIn, Values: values(2_000)},
		{Key: "a", Operator: metav1.LabelSelectorOpIn, Values: values(8_000)},
		{Key: strings.Repeat("a", 1<<20), Operator: metav1.LabelSelectorOpIn, Values: values(100)},
	} {
		job := mirrorJob()
		job.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{expression}}
		var err error
		took := costtest.Of(func() {
			at := &location{link: &link{worker: "w"}}
			at.selector, at.unselectable = selectorOf(job)
			_, err = at.eachChunk(t.Context(), nil, podChoice{}, maxPodBytes, nil)
		})
		if took > most || apistatus.Of(err).Code != http.StatusServiceUnavailable {
			t.Errorf("%d values: %d MiB were allocated, code %d", len(expression.Values), took>>20, apistatus.Of(err).Code)
		}
	}
}
